/**
 * Executes commands that the bench sends to this child process. Exits when the bench disconnects.
 */
export function handleCommands<Command>(execute: (command: Command) => Promise<unknown>): void {
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

/** Milliseconds since 1970 with fractions, comparable between processes of one machine. */
export const clock = (): number => performance.timeOrigin + performance.now()
