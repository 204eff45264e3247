import { describe, expect, it } from "vitest";
import { containsCardNumber } from "../../../src/lib/card-number.js";

/** The numbers that payment providers publish for tests, one or more a network. */
const TEST_CARDS = [
  "4242424242424242",
  "4000056655665556",
  "4222222222222",
  "5555555555554444",
  "2223003122003222",
  "378282246310005",
  "6011111111111117",
  "3056930009020004",
  "36227206271667",
  "30569309025904",
  "6555900000604105",
  "3566002020360505",
  "6200000000000005",
  "6205500000000000004",
  "6759649826438453",
  "2200000000000004",
];

describe("a card number", () => {
  it.each(TEST_CARDS)("is found bare and within a text: %s", (number) => {
    expect(containsCardNumber(number)).toBe(true);
    expect(containsCardNumber(`paid with ${number}.`)).toBe(true);
    expect(containsCardNumber(`card=${number};cvc=123`)).toBe(true);
    expect(containsCardNumber(`card_${number}`)).toBe(true);
  });

  it.each([
    "4242 4242 4242 4242",
    "4242-4242-4242-4242",
    "4242\u00a04242\u20114242 4242",
    "3782 822463 10005",
    "4242 4242 4242 4242 12/28 123",
    "no 17: 4242 4242 4242 4242",
    "+4242424242424242",
    "+4915123456789 4242424242424242",
    "4 2 4 2 4 2 4 2 4 2 4 2 4 2 4 2",
    "4242  4242  4242  4242",
    "4242.4242.4242.4242",
    "4242/4242/4242/4242",
    "4242 / 4242 / 4242 / 4242",
    "4242. 4242. 4242. 4242",
    "4242.4242-4242/4242",
    "3782.822463.10005",
    "3782/8224/6310/005",
    "3056.930902.5904",
    "3622.7206.2716.67",
    "6205.5000.0000.0000.004",
    "620550/0000000000004",
    "4242.4242.4242.4242.12.28",
    "4242/4242/4242/4242 12/28 123",
    "no 2026.4242.4242.4242.4242.",
    "+4242.4242.4242.4242",
    "card:4242.4242.4242.4242,cvc:123",
    "see https://shop.example/orders/4242/4242/4242/4242?paid=1",
  ])("is found in groups: %s", (text) => {
    expect(containsCardNumber(text)).toBe(true);
  });

  it.each([
    ["a wrong Luhn digit", "4242424242424241"],
    ["a prefix of no network", "1234567812345670"],
    ["a length that the network has not", "42424242424242"],
    ["a time in milliseconds", "1764435600000"],
    ["a time in microseconds", "1764435600000004"],
    ["a UUID of digits", "49290123-4123-4123-8123-123456789012"],
    ["one behind a prefix", "pay_49290123-4123-4123-8123-123456789012"],
    ["digits inside a hexadecimal id", "pay_0198d5f4242424242424242a8e45b77"],
    ["a longer run of digits", "42424242424242424242424242424242"],
    ["an international phone number", "+4222222222222 and +378 282 2463 10005"],
    ["a phone number in groups", "4222 22222 2222"],
    ["order 17", "order-17"],
    ["two dates", "2026-11-29 2026-12-05"],
    ["an amount", "999999999999"],
    ["a wrong Luhn digit between dots", "4242.4242.4242.4241"],
    ["a prefix of no network between slashes", "1234/5678/1234/5670"],
    ["an amount with its thousands between dots", "42.424.242.424.242,42"],
    ["a number with digits behind its point", "42424242.42424242"],
    ["coordinates", "42.424242, 42.42424242 and 4.242424242424242"],
    ["an address of a network", "42.42.42.42/42 and 4.242.424.242/4.242.424.2"],
    ["a version", "4.242.424.242.4242.42"],
    ["dates between dots, slashes", "29.11.2026 05.12.2026 and 2026/11/29 2026/12/05"],
    ["four years", "2023/2024/2025/2026"],
    ["a time to the second", "2026.11.29 12.42.42.424242"],
    // CNPJ of Brazil: its digits are a right number of Diners Club, were they grouped like one.
    ["a company's tax number", "36.227.206/2716-67"],
    ["a path of digits", "/42/42/42/42/42/42/42/42"],
    ["an international phone number between dots", "+3782.822463.10005"],
    ["digits between dots in a word", "v4242.4242.4242.4242 and 4242.4242.4242.4242rc"],
  ])("is not seen in %s", (_what, text) => {
    expect(containsCardNumber(text)).toBe(false);
  });

  it.each([
    ["digits", "4".repeat(500_000)],
    ["digits and spaces", "4 ".repeat(250_000)],
    ["digits before a letter", `${"4".repeat(500_000)}x`],
    ["groups before letters", "4444x ".repeat(80_000)],
    ["dashes", `4${"-".repeat(500_000)}`],
    ["groups between dots", "4242.".repeat(100_000)],
    ["digits and slashes", "4/".repeat(250_000)],
  ])("is searched for in linear time: %s", (_what, text) => {
    const started = performance.now();
    containsCardNumber(text);
    // Some 50 ms; a search that is quadratic takes minutes.
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});
