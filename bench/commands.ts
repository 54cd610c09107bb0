/** Executes commands of the bench in this child process. */
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

/** Returns a time that is comparable between processes of one machine. */
export const clock = (): number => performance.timeOrigin + performance.now()
