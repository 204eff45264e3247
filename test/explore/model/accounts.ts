/** The provider accounts that workers speak for. Payments are accepted for ours. */
export const OUR_ACCOUNT = "acct_ours";
export const OTHER_ACCOUNT = "acct_other";
