import { createBus } from '../bus.ts'
import { Core } from '../core.ts'
import { type EventStore, eventsOf } from '../log/event-store.ts'
import { createCoreMetrics } from '../metrics.ts'

/** Returns a view of a core in which these members are replaced. */
export const coreWith = <C extends object>(core: C, replaced: Partial<C>): C =>
  new Proxy(core, {
    get(target, key) {
      if (Object.hasOwn(replaced, key)) return Reflect.get(replaced, key)
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' && /^(part|setPart)$/.test(String(key)) ? value.bind(target) : value
    },
  })

/** Members of a core, or as much of each as a test needs. */
type Members = { [Name in keyof Core]?: unknown }

/** Creates a core that has these members and no parts. */
export const bareCore = (members: Members): Core => new Core(members as Core)

/** Creates a core whose logs are in this store, or in parts of one. */
export function logCore(store: Partial<EventStore>, members: Members = {}): Core {
  const core = bareCore({ bus: createBus(), metrics: createCoreMetrics(), now: Date.now, ...members })
  eventsOf.set(core, store as EventStore)
  return core
}
