import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * The floor: key, payment, attempt and event inserted in one transaction by pgbench, into the same tables of the same
 * server, with values of the same size. What a payment costs PostgreSQL when nothing else is done.
 */
const FLOOR_SQL = `
\\set a random(1, 9000000000000000)
\\set b random(1, 9000000000000000)
begin;
insert into idempotency_keys (tenant_id, operation, key, fingerprint, run, resource_id, request_id)
  values ('ten_01a22846621376f8940581a346f6fce1', 'payments.create', ':a-:b',
          'v1:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 1, 'pay_:a-:b',
          'req_01a22846621376f8940581a346f6fce1');
insert into payments (tenant_id, id, amount, currency, capture_method, payment_method, attempt_id,
    merchant_order_id, holds_order_id, metadata, provider, livemode)
  values ('ten_01a22846621376f8940581a346f6fce1', 'pay_:a-:b', 4200, 'usd', 'automatic', 'pm_card_visa',
          'att_:a-:b', ':a-:b', true, '{}', 'stripe', false);
insert into attempts (tenant_id, id, payment_id, operation, idempotency_key, run, request_id, provider,
    provider_account, livemode, parameters)
  values ('ten_01a22846621376f8940581a346f6fce1', 'att_:a-:b', 'pay_:a-:b', 'payments.create', ':a-:b', 1,
          'req_01a22846621376f8940581a346f6fce1', 'stripe', 'acct_100e72ddbf4b1962', false,
          '{"adapter_version": 1,"api_version": "2026-10-28.endive","create": {"amount": 4200,"currency": "usd","payment_method": "pm_card_visa","capture_method": "automatic","confirmation_method": "automatic","allowed_payment_method_types": ["card"],"metadata": {"payment_attempt_id": "att_345b43a0f39f198d468985c6d675742f","tenant_id": "ten_01a2283ea53777c482bbd8c1fca5da1e"}},"confirm": {}}');
insert into outbox (tenant_id, id, type, payment_id, data)
  values ('ten_01a22846621376f8940581a346f6fce1', 'evt_:a-:b', 'payment.created', 'pay_:a-:b',
          '{"id": "pay_01a22846621d7a2d963240d720ed6780","object": "payment","status": "processing","amount": 4200,"currency": "usd","amount_capturable": 0,"amount_captured": 0,"amount_refunded": 0,"capture_method": "automatic","payment_method": "pm_card_visa","customer": null,"merchant_order_id": "order-17","description": null,"statement_descriptor": null,"return_url": null,"metadata": {},"provider": "stripe","provider_payment_id": null,"next_action": null,"failure": null,"resolution": null,"livemode": false,"created_at": "2026-11-29T17:07:11.006Z","updated_at": "2026-11-29T17:07:11.006Z"}');
commit;
`;

export function hasPgbench(): boolean {
  return spawnSync("pgbench", ["--version"]).status === 0;
}

/** Transactions a second, and the mean latency that pgbench reports. */
export function measureFloor(
  databaseUrl: string,
  clients: number,
  seconds: number,
): { tps: number; meanMs: number } {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-floor-"));
  try {
    const script = join(folder, "floor.sql");
    // pgbench puts variables into text only with `simple` quoting: the ids are built outside of quotes.
    writeFileSync(
      script,
      FLOOR_SQL.replaceAll(/'(\w*_?):a-:b'/g, (_, prefix: string) => `'${prefix}' || :a || '-' || :b`),
    );
    const args = [
      "-n",
      "-M",
      "prepared",
      "-j",
      "2",
      "-T",
      String(seconds),
      "-c",
      String(clients),
      "-f",
      script,
      databaseUrl,
    ];
    const run = spawnSync("pgbench", args, { encoding: "utf8" });
    const tps = Number(/tps = ([\d.]+)/.exec(run.stdout)?.[1]);
    const meanMs = Number(/latency average = ([\d.]+)/.exec(run.stdout)?.[1]);
    if (run.status !== 0 || Number.isNaN(tps)) throw new Error(`pgbench failed: ${run.stderr}`);
    return { tps, meanMs };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
