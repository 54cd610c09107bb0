import { randomUUID } from 'node:crypto'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { type Core, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'

/** Id that is announced as changed when an inbox becomes watched or unwatched on a core. */
export const presenceChanged = 'operator-presence'

/** Duration of a process's lease. After its death, its operators are treated as present until the lease ends. */
const leaseMs = 10_000
/** Time for which an operator is treated as present after leaving, because consoles reconnect. */
const graceMs = 5_000
/** Maximum number of watched workspaces. Operators of further ones do not count as present. */
const maxWorkspaces = 10_000
const maxIdLength = 64
const readAgainMs = 1_000
const everyWorkspace = '*'

/**
 * Records which inboxes are watched on this core, and reads which inboxes are watched on any core.
 * Each core stores its watched workspaces; they expire with its lease.
 */
export const operatorPresenceOf = perCore((core) => {
  const { bus, logger, now } = core
  const processId = randomUUID()

  const watchers = new Map<string, { count: number; leftAt: number }>()
  let published = new Set<string>()
  /** Time in milliseconds at which the stored lease ends. */
  let leasedUntil = 0
  let isDue = false
  let known: { at: number; workspaces: Promise<ReadonlySet<string>> } | undefined

  const forget = () => {
    known = undefined
  }
  bus.on('changed', (ids) => {
    if (ids.includes(presenceChanged)) forget()
  })
  bus.on('gap', forget)

  async function write() {
    for (const [id, { count, leftAt }] of watchers) if (count === 0 && leftAt + graceMs <= now()) watchers.delete(id)
    if (watchers.size === 0 && published.size === 0) return
    const watched = new Set(watchers.keys())
    const isChanged = watched.size !== published.size || [...watched].some((id) => !published.has(id))
    if (!isChanged && leasedUntil - now() > leaseMs / 2) return
    const until = now() + leaseMs
    await storePresence(core, processId, [...watched], new Date(until))
    published = watched
    leasedUntil = until
    if (isChanged) await wakeupsOf(core).hint(presenceChanged)
  }

  // Writes run one after another, so that an older list never replaces a newer one.
  const writing = createSingleFlight(
    () => isDue,
    async () => {
      isDue = false
      await write()
    },
  )

  /** Renews the lease and removes workspaces that are no longer watched. */
  function renew() {
    isDue = true
    return writing.run()
  }

  return {
    /** Records that somebody watches the inbox of a workspace, or of all, until the returned function is called. */
    enter(workspaceId: string | undefined = everyWorkspace) {
      const isTooMany = watchers.size >= maxWorkspaces && !watchers.has(workspaceId)
      if (isTooMany || workspaceId.length > maxIdLength) return () => {}
      const entry = watchers.get(workspaceId) ?? { count: 0, leftAt: 0 }
      entry.count += 1
      watchers.set(workspaceId, entry)
      if (!published.has(workspaceId))
        renew().catch(logFailure(logger, 'write of operator presence failed; will retry'))
      let hasLeft = false
      return () => {
        if (hasLeft) return
        hasLeft = true
        entry.count -= 1
        entry.leftAt = now()
      }
    },

    async isAttended(workspaceId: string) {
      const at = now()
      if (!known || Math.abs(at - known.at) >= readAgainMs) {
        const present = core.db.operatorPresence.find({ until: { $gt: new Date(at) } }).toArray()
        const workspaces = present.then((found) => new Set(found.flatMap((each) => each.workspaces)))
        const read = { at, workspaces }
        read.workspaces.catch(() => {
          if (known === read) known = undefined
        })
        known = read
      }
      const workspaces = await known.workspaces
      return workspaces.has(workspaceId) || workspaces.has(everyWorkspace)
    },

    renew,
  }
})

/** The workspaces whose inbox is watched on one core. */
export interface OperatorPresenceDocument {
  _id: string
  workspaces: string[]
  /** End of the lease. A process that dies does not renew it. */
  until: Date
}

export async function storePresence(core: Core, processId: string, workspaces: string[], until: Date) {
  await core.db.operatorPresence.updateOne({ _id: processId }, { $set: { workspaces, until } }, { upsert: true })
}
