import type { Queryable } from "./db.js";

/** What the server tells this role of where the data is, beside the database's own oids: a statement may ask for no more. */
export interface Tells {
  readonly cluster: boolean;
  readonly timeline: boolean;
}

/** No right is needed for it. */
export const TELLS_NO_MORE: Tells = { cluster: false, timeline: false };

/**
 * A condition: the data stands where it was recorded to stand, and no recovery is under way. A write that marks a send
 * asks for it, so that none goes out on rows that a restore or a failover has made older, however long ago its process
 * has looked. What was not recorded, or is not told, says nothing.
 */
export function isInPlace(db: Queryable, tells: Tells) {
  const cluster = db`or split_part(i.system_identifier, '/', 1) not in
                          ('-', (select system_identifier::text from pg_control_system()))`;
  const timeline = db`or i.cluster_timeline <>
                          ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int`;
  return db`not exists (
      select from installation i
       where i.recovering_since is not null
          or split_part(i.system_identifier, '/', 2) <>
               (select oid::text from pg_database where datname = current_database())
               || '.' || 'installation'::regclass::oid::text
          ${tells.cluster ? cluster : db``}
          ${tells.timeline ? timeline : db``})`;
}
