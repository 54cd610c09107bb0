import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Client } from '@connectrpc/connect'
import type {
  ClaimedDelivery,
  WorkDeliveriesRequestSchema,
  WorkDeliveriesResponse,
} from '#proto/lead/v1/delivery_pb.js'
import type { LeadService } from '#proto/lead/v1/lead_pb.js'
import { until } from '../../test/support/until.ts'

/** Opens the stream of a worker and waits until the core has accepted it. */
export async function openStream(
  calls: Pick<Client<typeof LeadService>, 'workDeliveries'>,
  { workerId = 'worker', limit = 100, perDestination = 100 } = {},
) {
  const leaving = new AbortController()
  const input = createMessageQueue<MessageInitShape<typeof WorkDeliveriesRequestSchema>>()
  input.push({ workerId, room: { limit, perDestination } })
  const stream = {
    messages: [] as WorkDeliveriesResponse[],
    received: () => stream.messages.flatMap(({ deliveries }) => deliveries),
    recorded: () => stream.messages.flatMap((message) => message.recorded),
    send: input.push,
    /** Records a result with this HTTP status for each delivery. */
    answer: (deliveries: ClaimedDelivery[], status = 200, durationMs = 12) =>
      input.push({
        results: deliveries.map(({ deliveryId, attemptId, claimId, attemptNumber, destination }) => ({
          ...{ deliveryId, attemptId, claimId, attemptNumber, destination, durationMs },
          outcome: { case: 'response' as const, value: { status } },
        })),
      }),
    /** Ends the stream like a worker that dies. */
    leave: () => leaving.abort(),
    /** Resolves to the error with which the stream ended, if any. */
    ended: Promise.resolve<unknown>(undefined),
    end: input.end,
  }
  const response = calls.workDeliveries(input, { signal: leaving.signal })
  stream.ended = (async () => {
    for await (const message of response) stream.messages.push(message)
  })().catch((error: unknown) => error)
  await Promise.race([until('the stream to be accepted', () => stream.messages.length > 0), stream.ended])
  return stream
}

/** Messages of a client stream, in the order of `push`. */
function createMessageQueue<M>() {
  const queue: M[] = []
  let wake = () => {}
  let isOver = false
  return {
    push(message: M) {
      queue.push(message)
      wake()
    },
    end() {
      isOver = true
      wake()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (queue.length > 0) yield queue.shift()!
        if (isOver) return
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}
