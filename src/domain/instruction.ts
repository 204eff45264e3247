/** What a person may decide in a review. Which of these a review takes is computed: review.ts. */
export const REVIEW_RESOLUTIONS = [
  "adopt_provider_object",
  "cancel_at_provider",
  "mark_not_performed",
  "retry_same_key",
  "dismiss",
] as const;
export type ReviewResolution = (typeof REVIEW_RESOLUTIONS)[number];

/** A person's decision, kept on the review's attempt until a worker that holds the attempt has carried it out. */
export interface Instruction {
  readonly reviewId: string;
  readonly resolution: ReviewResolution;
  /** The object that the person has named; null: none. */
  readonly providerObjectId: string | null;
  /** What the review was about when it was decided; left out by a version that did not tell. */
  readonly reason?: string;
}
