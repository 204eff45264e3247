import { describe, expect, it } from "vitest";
import { parsePrefer } from "../../../src/http/prefer.js";

const DEFAULT_MS = 10_000;

describe("Prefer", () => {
  it.each<[string, number, string]>([
    ["wait=0", 0, "wait=0"],
    ["wait=30", 30_000, "wait=30"],
    ["wait=31", 30_000, "wait=30"],
    ["wait=9999999999", 30_000, "wait=30"],
    ["Wait = 7", 7_000, "wait=7"],
    ['wait="7"', 7_000, "wait=7"],
    ["wait=7; x=y", 7_000, "wait=7"],
    ["return=minimal, wait=7", 7_000, "wait=7"],
    ["wait=7, wait=9", 7_000, "wait=7"],
    ["respond-async", 0, "respond-async"],
    ["RESPOND-ASYNC", 0, "respond-async"],
    ["respond-async, wait=7", 7_000, "wait=7"],
    ["wait=7, respond-async", 7_000, "wait=7"],
    ["wait=x, respond-async", 0, "respond-async"],
  ])("%s is followed", (value, waitMs, applied) => {
    expect(parsePrefer(value, DEFAULT_MS)).toEqual({ waitMs, explicit: true, applied });
  });

  it.each([
    "",
    "wait",
    "wait=",
    "wait=-1",
    "wait=1.5",
    "wait=1e1",
    "wait=5s",
    "wait=99999999999",
    "wait=x, wait=5",
    "return=minimal",
    ",,;=",
    "wait:5",
  ])("%j asks for nothing", (value) => {
    expect(parsePrefer(value, DEFAULT_MS)).toEqual({ waitMs: DEFAULT_MS, explicit: false, applied: null });
  });
});
