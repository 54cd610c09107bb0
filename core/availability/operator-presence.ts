import type { Logger } from 'pino'
import type { Bus } from '../bus.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { OperatorPresenceStore } from './operator-presence-store.ts'

export interface OperatorPresence {
  /**
   * Records that somebody watches the inbox of a workspace, or of all workspaces, until the returned
   * function is called.
   */
  enter(workspaceId: string | undefined): () => void
  /** Returns whether somebody watches the workspace's inbox on any core. */
  isAttended(workspaceId: string): Promise<boolean>
  /** Renews the lease of this process and removes workspaces that are no longer watched. */
  renew(): Promise<void>
}

/** Id that is announced as changed when an inbox becomes watched or unwatched on a core. */
export const presenceChanged = 'operator-presence'

/**
 * Lease of a process in milliseconds. If the process dies, its operators are treated as present
 * until the lease ends.
 */
const leaseMs = 10_000
/**
 * Time in milliseconds for which an operator is treated as present after leaving, because consoles
 * reconnect.
 */
const graceMs = 5_000
/** Maximum number of workspaces with an operator. Operators of further ones do not count as present. */
const maxWorkspaces = 10_000
const maxIdLength = 64
const readAgainMs = 1_000
const everyWorkspace = '*'

/**
 * Records which inboxes are watched on this core, and reads which inboxes are watched on any core.
 * Each core stores its watched workspaces; they expire with its lease.
 */
export function createOperatorPresence(dependencies: {
  store: OperatorPresenceStore
  processId: string
  wakeups: Pick<Wakeups, 'hint'>
  bus: Bus
  logger: Logger
  now: () => number
}): OperatorPresence {
  const { store, processId, wakeups, bus, logger, now } = dependencies
  const watchers = new Map<string, { count: number; leftAt: number }>()
  let published = new Set<string>()
  let isDue = false
  let known: { at: number; workspaces: Promise<ReadonlySet<string>> } | undefined

  bus.on('changed', (ids) => {
    if (ids.includes(presenceChanged)) known = undefined
  })
  bus.on('gap', () => {
    known = undefined
  })

  async function write() {
    for (const [id, { count, leftAt }] of watchers) if (count === 0 && leftAt + graceMs <= now()) watchers.delete(id)
    if (watchers.size === 0 && published.size === 0) return
    const watched = new Set(watchers.keys())
    const isChanged = watched.size !== published.size || [...watched].some((id) => !published.has(id))
    await store.renew(processId, [...watched], new Date(now() + leaseMs))
    published = watched
    if (isChanged) await wakeups.hint(presenceChanged)
  }

  /**
   * Writes run one after another, so that an older list never replaces a newer one. One write serves
   * all inboxes that have opened during the write before it.
   */
  const writing = createSingleFlight(
    () => isDue,
    async () => {
      isDue = false
      await write()
    },
  )

  function renew(): Promise<void> {
    isDue = true
    return writing.run()
  }

  return {
    enter(workspaceId = everyWorkspace) {
      const isTooMany = watchers.size >= maxWorkspaces && !watchers.has(workspaceId)
      if (isTooMany || workspaceId.length > maxIdLength) return () => {}
      const entry = watchers.get(workspaceId) ?? { count: 0, leftAt: 0 }
      entry.count += 1
      watchers.set(workspaceId, entry)
      if (!published.has(workspaceId))
        renew().catch((error: Error) =>
          logger.warn({ reason: error.name }, 'write of operator presence failed; will retry'),
        )
      let hasLeft = false
      return () => {
        if (hasLeft) return
        hasLeft = true
        entry.count -= 1
        entry.leftAt = now()
      }
    },

    async isAttended(workspaceId) {
      const at = now()
      if (!known || Math.abs(at - known.at) >= readAgainMs) {
        const read = { at, workspaces: store.watched(new Date(at)).then((ids) => new Set(ids)) }
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
}
