import type { MessageInitShape } from '@bufbuild/protobuf'
import type { WatchEventsRequestSchema } from '#proto/messaging/v1/messaging_pb.js'

export type LinkCommand = NonNullable<MessageInitShape<typeof WatchEventsRequestSchema>['command']>

/** What a link has still to say to its core, read by the call as it goes out. */
export interface CommandQueue extends AsyncIterable<{ command: LinkCommand }> {
  push(command: LinkCommand): void
  close(): void
}

export function createCommandQueue(): CommandQueue {
  let commands: LinkCommand[] = []
  let closed = false
  let wake = () => {}

  return {
    push(command) {
      if (closed) return
      commands.push(command)
      wake()
    },
    close() {
      closed = true
      commands = []
      wake()
    },
    async *[Symbol.asyncIterator]() {
      while (!closed) {
        const batch = commands
        commands = []
        for (const command of batch) yield { command }
        if (commands.length === 0 && !closed) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    },
  }
}
