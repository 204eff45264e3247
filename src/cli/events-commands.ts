import { Command } from "commander";
import { listProviderEvents } from "../operations/list-provider-events.js";
import { replayAllProviderEvents, replayProviderEvent } from "../operations/replay-provider-event.js";
import { withStore } from "./environment.js";
import { CommandFailed, JSON_OPTION, type Json, print, table, WrongUsage } from "./output.js";

const MOST_EVENTS_SHOWN = 100;

export function eventsCommand(): Command {
  const events = new Command("events").description("the provider's events that are not applied");
  events
    .command("list")
    .description(`waiting and parked ones, oldest first, at most ${MOST_EVENTS_SHOWN}`)
    .option("--parked", "only those that were given up and wait for a replay")
    .option(...JSON_OPTION)
    .action(async ({ parked, json }: Json & { parked?: boolean }) => {
      const wanted = { parkedOnly: parked === true, limit: MOST_EVENTS_SHOWN };
      const found = await withStore((store) => listProviderEvents(store, wanted));
      const data = found.map((event) => ({
        id: event.eventId,
        provider: event.provider,
        type: event.type,
        object_id: event.objectId,
        livemode: event.livemode,
        state: event.state,
        tries: event.tries,
        outcome: event.outcome,
        received_at: event.receivedAt.toISOString(),
        due_at: event.dueAt?.toISOString() ?? null,
      }));
      const rows = data.map((event) => [
        event.id,
        event.type,
        event.object_id,
        event.state,
        String(event.tries),
        event.outcome ?? "",
        event.received_at,
      ]);
      print(
        json === true,
        { data },
        table(["ID", "TYPE", "OBJECT", "STATE", "TRIES", "LAST TRY", "RECEIVED"], rows),
      );
    });
  events
    .command("replay")
    .description("make a parked event due again; with --all, every one")
    .argument("[id]", "evt_… as `pawl events list --parked` shows it")
    .option("--all", "every parked event")
    .option(...JSON_OPTION)
    .action(async (id: string | undefined, { all, json }: Json & { all?: boolean }) => {
      if ((id === undefined) !== (all === true)) throw new WrongUsage("name one event, or --all");
      const replayed = await withStore(async (store) => {
        if (id === undefined) return replayAllProviderEvents(store);
        if (await replayProviderEvent(store, id)) return 1;
        throw new CommandFailed(`no event ${id} is parked`);
      });
      print(json === true, { replayed }, [`${replayed} due again`]);
    });
  return events;
}
