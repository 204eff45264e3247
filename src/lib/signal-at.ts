/** What `signalAt` reads; a configuration that does not match is refused before anything runs. */
export const SIGNAL_SPEC = /^\w+(?:#[1-9]\d?)?=(?:kill|stop)(?:,\w+(?:#[1-9]\d?)?=(?:kill|stop))*$/;

const SETTLE_MS = 50;

/**
 * `name=kill,name=stop`: at that point the process kills or stops itself (`kill -CONT` lets it go on). `name#2=kill`:
 * the second time it comes by.
 */
export function signalAt(spec: string): (name: string) => Promise<void> {
  const signals = { kill: "SIGKILL", stop: "SIGSTOP" } as const;
  const armed = spec.split(",").map((part) => {
    const [, name, passes, action] = /^(\w+)(?:#([1-9]\d?))?=(kill|stop)$/.exec(part) ?? [];
    if (name === undefined) throw new Error(`${part} is not name=kill or name=stop`);
    return { name, left: Number(passes ?? 1), signal: signals[action as keyof typeof signals] };
  });
  return async (name) => {
    for (const probe of armed.filter((one) => one.name === name)) {
      probe.left -= 1;
      if (probe.left !== 0) continue;
      process.kill(process.pid, probe.signal);
      // The signal takes effect at the next turn of the event loop at the latest: nothing after the probe may run before.
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    }
  };
}
