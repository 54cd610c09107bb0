import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import {
  type Command,
  type FrameSchema,
  type Subscribe,
  WatchEventsResponseSchema,
} from '#proto/messaging/v1/messaging_pb.js'
import { EPOCH } from './core-answers.ts'

type FrameInit = NonNullable<MessageInitShape<typeof FrameSchema>['frame']>

/** The core side of one `WatchEvents` call. */
export interface TestLink {
  subscribed: Subscribe[]
  commands: Command['command'][]
  open: Map<number, Subscribe>
  push(...frames: FrameInit[]): void
  /** Ends the call with an error, as if the core died. */
  break(): void
}

export function createTestLink() {
  let frames: FrameInit[] = []
  let broken = false
  let wake = () => {}
  const link: TestLink & { responses(): AsyncGenerator } = {
    subscribed: [],
    commands: [],
    open: new Map(),
    push(...more) {
      frames.push(...more)
      wake()
    },
    break() {
      broken = true
      wake()
    },
    async *responses() {
      while (!broken) {
        const batch = frames
        frames = []
        if (batch.length > 0) yield create(WatchEventsResponseSchema, { frames: batch.map((frame) => ({ frame })) })
        else await new Promise<void>((resolve) => (wake = resolve))
      }
      throw new ConnectError('the core died', Code.Unavailable)
    },
  }
  return link as TestLink & { responses(): AsyncGenerator<never> }
}

export const eventFrame = (
  subscriptionIds: number[],
  { sequence, type, json }: { sequence: number; type: string; json: string },
): FrameInit => ({ case: 'event', value: { subscriptionIds, id: `${EPOCH}-${sequence}`, sequence, type, json } })
