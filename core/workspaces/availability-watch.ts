import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import type { StreamSubscription, SubscriptionSink } from '../log/session-streams.ts'
import type { StreamSubscriptions } from '../log/stream-subscriptions.ts'
import type { AvailabilityOf, AvailabilityState } from './availability.ts'
import { presenceChanged } from './operator-presence.ts'
import type { SiteDirectory } from './workspaces.ts'

export interface AvailabilityWatch {
  /** Tells open streams about changes that are due by the opening hours or by operators. */
  check(): Promise<void>
}

/** Pause in milliseconds before held streams are tried again. */
const heldPauseMs = 50

interface Site {
  streams: Set<StreamSubscription>
  /** Time of the next evaluation by the clock. */
  nextAt: number
  /** Changes that arrived so far. An evaluation that began before the last one is repeated. */
  changes: number
}

/** Encodes a state as the `data` of the event. Equal states have the same text. */
export const encodeAvailability = ({ online, nextChangeAt }: AvailabilityState): string =>
  JSON.stringify({ online, nextChangeAt: nextChangeAt?.toISOString() })

/**
 * Sends `availability.changed` to the open streams of an installation. Each stream is compared with
 * the state that it was last told, so a change is sent once, whatever made the core look.
 */
export function createAvailabilityWatch(dependencies: {
  directory: Pick<SiteDirectory, 'installations'>
  availabilityOf: AvailabilityOf
  subscriptions: Pick<StreamSubscriptions, 'observe'>
  bus: Bus
  logger: Logger
  now: () => number
}): AvailabilityWatch {
  const { directory, availabilityOf, subscriptions, bus, logger, now } = dependencies
  const sites = new Map<string, Site>()

  async function evaluate(publicSiteKey: string) {
    const site = sites.get(publicSiteKey)
    if (!site) return
    const { changes } = site
    const installation = await directory.installations.get(publicSiteKey)
    // The session watch ends the streams of an installation that is gone.
    if (!installation) return
    const state = await availabilityOf(installation)
    if (site.changes !== changes) return evaluate(publicSiteKey)
    const dependsOnOperators = installation.availability?.requiresOperator === true
    site.nextAt = dependsOnOperators ? 0 : (state.nextChangeAt?.getTime() ?? Number.POSITIVE_INFINITY)
    tell(publicSiteKey, site, encodeAvailability(state))
  }

  function tell(publicSiteKey: string, { streams }: Site, data: string) {
    const bySink = new Map<SubscriptionSink, number[]>()
    let hasHeld = false
    for (const stream of streams) {
      if (stream.toldAvailability === data) continue
      // It is not known yet whether the stream may go on.
      if (stream.isHeld || !stream.isOpen) hasHeld = true
      else {
        stream.toldAvailability = data
        bySink.set(stream.sink, [...(bySink.get(stream.sink) ?? []), stream.id])
      }
    }
    const occurredAt = new Date(now())
    for (const [sink, ids] of bySink) sink.availability(ids, { occurredAt, data })
    if (hasHeld) setTimeout(() => look(publicSiteKey), heldPauseMs).unref()
  }

  function look(publicSiteKey: string) {
    evaluate(publicSiteKey).catch((error: Error) => {
      const site = sites.get(publicSiteKey)
      if (site) site.nextAt = 0
      logger.warn({ reason: error.name }, 'read of availability failed; retrying within a second')
    })
  }

  function lookAgain(keys: Iterable<string>) {
    for (const key of keys) {
      const site = sites.get(key)
      if (!site) continue
      site.changes += 1
      look(key)
    }
  }

  subscriptions.observe({
    opened(stream) {
      const { publicSiteKey } = stream.session
      const site = sites.get(publicSiteKey) ?? { streams: new Set(), nextAt: 0, changes: 0 }
      site.streams.add(stream)
      // The state may have changed since it was read for this stream.
      site.nextAt = 0
      sites.set(publicSiteKey, site)
    },
    ended(stream) {
      const { publicSiteKey } = stream.session
      const site = sites.get(publicSiteKey)
      site?.streams.delete(stream)
      if (site?.streams.size === 0) sites.delete(publicSiteKey)
    },
  })
  bus.on('changed', (ids) => lookAgain(ids.includes(presenceChanged) ? [...sites.keys()] : new Set(ids)))
  bus.on('gap', () => lookAgain([...sites.keys()]))

  return {
    async check() {
      const due = [...sites].filter(([, { nextAt }]) => nextAt <= now())
      await Promise.all(due.map(([publicSiteKey]) => evaluate(publicSiteKey)))
    },
  }
}
