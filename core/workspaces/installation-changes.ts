import type { Bus } from '../bus.ts'
import type { WorkspaceStore } from './workspace-store.ts'
import type { SiteDirectory } from './workspaces.ts'

/**
 * Maximum time in milliseconds from the time that a change records until readers can see the
 * change.
 */
const lateMs = 5_000

/**
 * Finds changes of installations whose wake-up is missing because the process that wrote them died.
 * One small query finds the changes of all installations, so it runs often, and a change takes
 * effect on every core within a second.
 */
export function createInstallationChanges(dependencies: {
  store: Pick<WorkspaceStore, 'installationsChangedSince' | 'lastInstallationChange'>
  directory: Pick<SiteDirectory, 'installations'>
  bus: Bus
}): { check(): Promise<void> } {
  const { store, directory, bus } = dependencies
  /** Time of the latest known change, by the clock of the database. */
  let latest: number | undefined
  /** Times of the changes that were already announced, by site key. */
  let announced = new Map<string, number>()

  return {
    async check() {
      latest ??= (await store.lastInstallationChange())?.getTime() ?? 0
      const found = await store.installationsChangedSince(new Date(latest - lateMs))
      const before = announced
      announced = new Map(found.map(({ publicSiteKey, changedAt }) => [publicSiteKey, changedAt.getTime()]))
      latest = Math.max(latest, ...announced.values())
      const missed = [...announced].filter(
        ([key, at]) => before.get(key) !== at && directory.installations.peek(key)?.changedAt?.getTime() !== at,
      )
      if (missed.length > 0)
        bus.emit(
          'changed',
          missed.map(([key]) => key),
        )
    },
  }
}
