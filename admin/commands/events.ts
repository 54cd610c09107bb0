import { feedEventTypes } from '../../contract/event-kinds.ts'
import { command, type Group, many, must, text, UsageError, url } from '../command.ts'
import { createForwarder } from '../listen/forwarder.ts'
import { followFeed, followSubscription } from '../listen/local-events.ts'

export const events: Group = {
  listen: command(
    {
      'forward-to': must(url('http://localhost:9000/')('the address, such as http://localhost:9000/')),
      workspace: text('the workspace’s id or name; default: that of the demo', 'workspaceId'),
      type: many(text(`only events of this type; repeatable; default: all of ${feedEventTypes.join(', ')}`, 'types')),
      subscription: text('only the lead deliveries of this subscription: id or host', 'subscriptionId'),
      replay: text('begin at this cursor, as `events listen` prints it, or at this ISO time; default: now', 'cursor'),
    },
    async (services, { forwardTo: url, subscriptionId, types = [], cursor: replay, ...given }, demo, host) => {
      const workspaceId = given.workspaceId ?? demo.workspaceId
      if (workspaceId === undefined) throw new UsageError('missing: --workspace')
      const from = replay === undefined ? new Date() : startOf(replay)
      const { print, webhookSecret: secret } = host
      const signal = host.untilStopped()
      const report = (line: string) => print(`${new Date().toISOString().slice(11, 19)}  ${line}`)
      const forwarder = createForwarder({ url, secret, report })
      const options = { signal, report }
      const pages =
        subscriptionId === undefined
          ? followFeed(services, { workspaceId, from, types }, options)
          : followSubscription(services, { workspaceId, subscriptionId, from: timeOf(from) }, options)

      let next: string | undefined
      for await (const page of pages) {
        if (next === undefined)
          print(`Sends the events of ${subscriptionId ?? workspaceId} to ${url}\nWEBHOOK_SECRET=${secret}`)
        for (const event of page.events) {
          next = event.replayFrom
          if (!signal.aborted) await forwarder.send(event)
        }
        if (!signal.aborted) next = page.next
      }
      const left = forwarder.stop()
      print(
        `Stopped. ${left.length === 0 ? '' : `${left.length} events were not accepted. `}Continue with --replay ${left[0]?.replayFrom ?? next}`,
      )
    },
    { printsText: true },
  ),
}

const dateFormat = /^\d{4}-\d{2}-\d{2}/

function startOf(replay: string) {
  if (!dateFormat.test(replay)) return replay
  const time = new Date(replay)
  if (Number.isNaN(time.getTime()))
    throw new UsageError('--replay must be a cursor or an ISO time, like 2026-01-31T12:00:00Z')
  return time
}

function timeOf(from: Date | string) {
  if (from instanceof Date) return from
  throw new UsageError('--replay of a subscription must be an ISO time, like 2026-01-31T12:00:00Z')
}
