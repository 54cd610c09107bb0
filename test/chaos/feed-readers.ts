import { Code, ConnectError } from '@connectrpc/connect'
import type { Event } from '#proto/events/v1/events_pb.js'
import { errorInfoOf } from '../../core-client/error-info.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'
import { pause } from './visitors.ts'

/**
 * Acts as a service that reads the feed of a workspace until the run stops. It sleeps, changes the core,
 * and dies before it has stored its last cursor: it then gets these events a second time.
 */
export async function readFeed(context: ClientContext, reader: string, workspaceId: string): Promise<void> {
  const { service, recorder, random, draining, stopped } = context
  const operators = service.cores.map(({ url }) => operatorOf(url, service.demo.serviceToken))
  recorder.add({ kind: 'feed opened', reader })
  /** What the reader has stored durably. */
  let stored = ''

  function handle(events: Event[], cursor: string) {
    for (const { cursor, type, conversationId, leadId, sequence, delivery, message } of events) {
      const about = conversationId || delivery?.deliveryId || leadId
      const { messageId } = message?.message ?? {}
      recorder.add({ kind: 'feed event', reader, cursor, type, about, sequence, messageId })
    }
    const dies = events.length > 0 && !draining.aborted && random.next() < 0.1
    if (!dies) stored = cursor
    return dies
  }

  async function list({ events }: Operator) {
    const query = { workspaceId, cursor: stored, limit: random.pick([3, 100]), waitSeconds: 1 }
    const page = await events.listEvents(query, { timeoutMs: callTimeoutMs, signal: stopped })
    handle(page.events, page.cursor)
  }

  async function follow({ events }: Operator) {
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(random.between(300, 3_000))])
    for await (const page of events.followEvents({ workspaceId, cursor: stored }, { signal }))
      if (handle(page.events, page.cursor)) return
  }

  while (!stopped.aborted) {
    await (random.next() < 0.5 ? list : follow)(random.pick(operators)).catch(readAgain)
    if (!draining.aborted && random.next() < 0.2) await pause(random.between(500, 4_000), draining)
    await pause(random.between(10, 100), stopped)
  }

  /** Continues with the cursor that the error names: the stored one belongs to a database before a restore. */
  function readAgain(reason: unknown) {
    const error = ConnectError.from(reason)
    if (error.code !== Code.InvalidArgument) return
    const [, cursor] = errorInfoOf(error)?.issues[0]?.rule.split(' ') ?? []
    if (cursor === undefined) throw error
    stored = cursor
    recorder.add({ kind: 'feed read again', reader })
  }
}
