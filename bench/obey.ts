/** For the bench's own processes: does what the bench tells it, one command after the other, and ends with the bench. */
export function obey<Command>(execute: (command: Command) => Promise<unknown>): void {
  process.on('message', (command: Command) => {
    execute(command).then(
      (answer) => process.send?.({ answer }),
      (error: Error) => process.send?.({ error: error.message }),
    )
  })
  process.on('disconnect', () => process.exit())
  process.on('SIGTERM', () => process.exit())
  process.send?.('ready')
}

/** Milliseconds since 1970 with their fractions: comparable between the processes of one machine. */
export const clock = (): number => performance.timeOrigin + performance.now()
