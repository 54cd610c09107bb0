import { createJobs } from '../concurrency/job.ts'
import { type Core, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { type StreamSubscription, streamSubscriptionsOf } from '../streams/stream-subscriptions.ts'
import { siteDirectoryOf } from '../workspaces/workspaces.ts'
import { type AvailabilityState, readAvailability } from './availability.ts'
import { operatorPresenceOf, presenceChanged } from './operator-presence.ts'

/** Pause in milliseconds before held streams are tried again. */
const heldPauseMs = 50

interface Site {
  streams: Set<StreamSubscription>
  /** Time from which `check` evaluates the installation again. 0 means at every call. */
  nextAt: number
  /** Number of announced changes. An evaluation is repeated if a change arrives while it runs. */
  changes: number
}

/** Encodes a state as the `data` of the event. Equal states have the same text. */
export const encodeAvailability = ({ online, nextChangeAt }: AvailabilityState): string =>
  JSON.stringify({ online, nextChangeAt: nextChangeAt?.toISOString() })

/**
 * Sends `availability.changed` to the open streams of an installation. A stream gets a state only if it
 * differs from the last one that the stream got.
 */
export const availabilitySenderOf = perCore((core) => {
  const { bus, logger, now } = core

  const sites = new Map<string, Site>()

  async function evaluate(publicSiteKey: string) {
    const site = sites.get(publicSiteKey)
    if (!site) return
    const { changes } = site
    const installation = await siteDirectoryOf(core).installations.get(publicSiteKey, true)
    // The session watch ends the streams of an installation that no longer exists.
    if (!installation) return
    const state = await readAvailability(core, installation)
    if (site.changes !== changes) return evaluate(publicSiteKey)
    const dependsOnOperators = installation.availability?.requiresOperator === true
    site.nextAt = dependsOnOperators ? 0 : (state.nextChangeAt?.getTime() ?? Number.POSITIVE_INFINITY)
    tell(publicSiteKey, site, encodeAvailability(state))
  }

  function tell(publicSiteKey: string, { streams }: Site, data: string) {
    const untold = [...streams].filter(({ toldAvailability }) => toldAvailability !== data)
    // The other streams cannot send now: their session is being checked, or they are still opening.
    const ready = untold.filter(({ isHeld, isOpen }) => isOpen && !isHeld)
    for (const stream of ready) stream.toldAvailability = data
    const change = { occurredAt: new Date(now()), data }
    for (const [sink, theirs] of Map.groupBy(ready, (stream) => stream.sink))
      sink.availability(
        theirs.map(({ id }) => id),
        change,
      )
    if (ready.length < untold.length) setTimeout(() => look(publicSiteKey), heldPauseMs).unref()
  }

  function look(publicSiteKey: string) {
    evaluate(publicSiteKey).catch((error) => {
      const site = sites.get(publicSiteKey)
      if (site) site.nextAt = 0
      logFailure(logger, 'read of availability failed; retrying within a second')(error)
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

  streamSubscriptionsOf(core).observe({
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
    /** Evaluates each installation whose opening hours or operators may have changed its availability. */
    async check() {
      const due = [...sites].filter(([, { nextAt }]) => nextAt <= now())
      await Promise.all(due.map(([publicSiteKey]) => evaluate(publicSiteKey)))
    },
  }
})

const checkEveryMs = 500
/** Interval at which a core checks its lease (`operator-presence.ts`). It renews the lease after half of its 10 s. */
const presenceEveryMs = 3_000

export const availabilityJobs = (core: Core) =>
  createJobs(core, {
    'check of availability': [checkEveryMs, availabilitySenderOf(core).check],
    'renewal of operator presence': [presenceEveryMs, operatorPresenceOf(core).renew],
  })
