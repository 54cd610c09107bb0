import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CommandSchema } from '#proto/messaging/v1/messaging_pb.js'

export type LinkCommand = NonNullable<MessageInitShape<typeof CommandSchema>['command']>

const COMMANDS_PER_MESSAGE = 1_000

/** The commands that a link has not sent yet. The call iterates over it. */
export interface CommandQueue extends AsyncIterable<{ commands: { command: LinkCommand }[] }> {
  push(command: LinkCommand): void
  close(): void
}

export function createCommandQueue(): CommandQueue {
  let commands: { command: LinkCommand }[] = []
  let closed = false
  let wake = () => {}

  return {
    push(command) {
      if (closed) return
      commands.push({ command })
      wake()
    },
    close() {
      closed = true
      commands = []
      wake()
    },
    async *[Symbol.asyncIterator]() {
      while (!closed) {
        if (commands.length > 0) yield { commands: commands.splice(0, COMMANDS_PER_MESSAGE) }
        if (commands.length === 0 && !closed) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    },
  }
}
