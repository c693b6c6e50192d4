// A pause on the timers of the machine, whatever the clock of the service says.

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
