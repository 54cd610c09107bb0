import type { Transport } from '@connectrpc/connect'
import type { HttpClient } from './http-client.ts'

export interface CoreNode {
  /** Identifies the core: `http://10.0.0.7:8090`. */
  readonly url: string
  readonly transport: Transport
  readonly request: HttpClient['request']
  /** Whether a watcher calls `markAlive` and `markFailed`. A core in this process has none. */
  readonly isWatched?: boolean
}

/**
 * Class of a failed call: `answered` with an error of the core; `abandoned` by the caller or at the
 * deadline; `repeatable` on another core, because the first did not get it or the method is idempotent;
 * `lost`: the core may have got it, so it must not be repeated.
 */
export type Failure = 'answered' | 'abandoned' | 'repeatable' | 'lost'

export class OutOfReachError extends Error {
  override readonly name = 'OutOfReachError'
}

export interface PoolFollower {
  added(core: CoreNode): void
  removed(core: CoreNode): void
  /** Whether it uses the cores although it makes no call, for example by open streams. */
  isBusy?(): boolean
}

/** A pool counts as unused this long after the last call, unless a core that should answer has been silent this long. */
const RESTS_AFTER_MS = 1_500

interface Member {
  core: CoreNode
  inFlight: number
  hasFailed: boolean
  aliveAt: number
}

export type CorePool = ReturnType<typeof createCorePool>

export function createCorePool(options: { cores?: readonly CoreNode[] }) {
  const known = new WeakMap<CoreNode, Member>()
  const followers: PoolFollower[] = []
  let members: Member[] = []
  let turn = 0
  let calledAt = 0

  function memberOf(core: CoreNode) {
    const member = known.get(core) ?? { core, inFlight: 0, hasFailed: false, aliveAt: 0 }
    known.set(core, member)
    return member
  }

  function choose(tried: ReadonlySet<Member>) {
    const free = members.filter((member) => !tried.has(member) && !(member.hasFailed && member.core.isWatched))
    const index = turn++ % free.length
    const next = free[index]
    const other = free[(index + 1 + Math.floor(Math.random() * (free.length - 1))) % free.length]
    return next !== undefined && other !== undefined && other.inFlight < next.inFlight ? other : next
  }

  function recordFailure(member: Member) {
    member.hasFailed = true
  }

  function recordSuccess(member: Member) {
    member.aliveAt = Date.now()
    member.hasFailed = false
  }

  /** Cores that stay keep their state. Running calls on removed cores may finish. */
  function replace(cores: readonly CoreNode[]) {
    const removed = members.filter(({ core }) => !cores.includes(core))
    const before = members
    members = cores.map(memberOf)
    for (const member of members) {
      if (!before.includes(member)) for (const follower of followers) follower.added(member.core)
    }
    for (const { core } of removed) for (const follower of followers) follower.removed(core)
  }

  replace(options.cores ?? [])

  return {
    /**
     * Tries cores until one answers. Each step takes the less busy of two: the next core in turn and a
     * random one. An unreachable core is skipped until its watcher marks it alive. Throws the error of the
     * call if `classify` says that it is final, else `OutOfReachError`.
     */
    async call<Answer>(attempt: (core: CoreNode) => Promise<Answer>, classify: (reason: unknown) => Failure) {
      const tried = new Set<Member>()
      let cause: unknown
      calledAt = Date.now()
      for (let member = choose(tried); member !== undefined; member = choose(tried)) {
        tried.add(member)
        member.inFlight++
        try {
          const answer = await attempt(member.core)
          recordSuccess(member)
          return answer
        } catch (reason) {
          const failure = classify(reason)
          if (failure === 'answered') recordSuccess(member)
          if (failure === 'answered' || failure === 'abandoned') throw reason
          recordFailure(member)
          cause = reason
          if (failure === 'lost') break
        } finally {
          member.inFlight--
        }
      }
      throw new OutOfReachError('no core reachable', { cause })
    },
    replace,
    /** Calls `added` for each core at once, then for each change. */
    follow(follower: PoolFollower) {
      followers.push(follower)
      for (const { core } of members) follower.added(core)
    },
    markFailed: (core: CoreNode) => recordFailure(memberOf(core)),
    markAlive: (core: CoreNode) => recordSuccess(memberOf(core)),
    /** Whether another core is healthy and was alive after `since` (milliseconds since 1970). */
    hasOtherAlive: (core: CoreNode, since: number) =>
      members.some((member) => member.core !== core && !member.hasFailed && member.aliveAt >= since),
    inFlight: (core: CoreNode) => memberOf(core).inFlight,
    isInUse() {
      const isRecent = (at: number) => Math.abs(Date.now() - at) < RESTS_AFTER_MS
      const hasWork = ({ inFlight, hasFailed, aliveAt }: Member) => inFlight > 0 || !(hasFailed || isRecent(aliveAt))
      return isRecent(calledAt) || members.some(hasWork) || followers.some((follower) => follower.isBusy?.())
    },
  }
}
