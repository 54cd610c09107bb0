import type { Transport } from '@connectrpc/connect'

const SKIP_MIN_MS = 200
const SKIP_MAX_MS = 2_000

/** A core within reach of this process. */
export interface Core {
  /** Where it is: `http://10.0.0.7:8090`. What tells it from the others. */
  readonly url: string
  readonly transport: Transport
  /** Somebody looks after it and says when it is alive again. */
  readonly isWatched?: boolean
}

/**
 * What a failed call says. `answered`: the core's own word, final. `abandoned`: nothing about the core, final too. Out of
 * reach are those of `repeatable`, which another core may be asked for, and of `lost`, where nobody knows whether it arrived.
 */
export type Failure = 'answered' | 'abandoned' | 'repeatable' | 'lost'

/** No core within reach took the call. */
export class OutOfReachError extends Error {
  override readonly name = 'OutOfReachError'
}

export interface PoolFollower {
  added(core: Core): void
  removed(core: Core): void
}

/** The cores that a process has to choose from, and how they do. */
export interface CorePool {
  /**
   * Makes a call on one core after another until one takes it, beginning with the less busy of two: the one whose turn it is, and another at random. One out of
   * reach is left aside until it was seen alive; where nobody watches it, for a short while, longer each time up to two
   * seconds, and is then tried by one call alone.
   * Errors: what the call failed with, where `judge` says that it is final; else `OutOfReachError`.
   */
  call<Answer>(attempt: (core: Core) => Promise<Answer>, judge: (reason: unknown) => Failure): Promise<Answer>
  /** From now on these are the cores. Those that stay are known as before; calls on those that go may still end. */
  replace(cores: readonly Core[]): void
  /** Is told of each core, those that are there already too. */
  follow(follower: PoolFollower): void
  setAside(core: Core): void
  /** It was seen alive, so that it is asked again at once. */
  revive(core: Core): void
  /** Whether a core besides this one is in good health. */
  hasAnother(core: Core): boolean
  /** Calls that it is at. */
  inFlight(core: Core): number
}

interface Member {
  core: Core
  inFlight: number
  failures: number
  skipUntil: number
  onTrial: boolean
}

export function createCorePool(options: {
  cores?: readonly Core[]
  now?: () => number
  random?: () => number
}): CorePool {
  const { now = Date.now, random = Math.random } = options
  const known = new WeakMap<Core, Member>()
  const followers: PoolFollower[] = []
  let members: Member[] = []
  let turn = 0

  function memberOf(core: Core): Member {
    const member = known.get(core) ?? { core, inFlight: 0, failures: 0, skipUntil: 0, onTrial: false }
    known.set(core, member)
    return member
  }

  function mayBeAsked({ core, failures, onTrial, skipUntil }: Member): boolean {
    return failures === 0 || (!core.isWatched && !onTrial && skipUntil <= now())
  }

  function choose(asked: ReadonlySet<Member>): Member | undefined {
    const free = members.filter((member) => !asked.has(member) && mayBeAsked(member))
    const place = turn++ % free.length
    const one = free[place]
    const other = free[(place + 1 + Math.floor(random() * (free.length - 1))) % free.length]
    return one !== undefined && other !== undefined && other.inFlight < one.inFlight ? other : one
  }

  function leaveAside(member: Member): void {
    const pause = Math.min(SKIP_MAX_MS, SKIP_MIN_MS * 2 ** member.failures)
    member.skipUntil = now() + pause * (0.5 + random() / 2)
    member.failures = Math.min(member.failures + 1, 10)
  }

  function heal(member: Member): void {
    member.failures = 0
    member.skipUntil = 0
  }

  function replace(cores: readonly Core[]): void {
    const gone = members.filter(({ core }) => !cores.includes(core))
    const before = members
    members = cores.map(memberOf)
    for (const member of members) {
      if (!before.includes(member)) for (const follower of followers) follower.added(member.core)
    }
    for (const { core } of gone) for (const follower of followers) follower.removed(core)
  }

  replace(options.cores ?? [])

  return {
    async call(attempt, judge) {
      const asked = new Set<Member>()
      let cause: unknown
      for (let member = choose(asked); member !== undefined; member = choose(asked)) {
        asked.add(member)
        const isTrial = member.failures > 0
        member.onTrial ||= isTrial
        member.inFlight++
        try {
          const answer = await attempt(member.core)
          heal(member)
          return answer
        } catch (reason) {
          const failure = judge(reason)
          if (failure === 'answered') heal(member)
          if (failure === 'answered' || failure === 'abandoned') throw reason
          leaveAside(member)
          cause = reason
          if (failure === 'lost') break
        } finally {
          member.inFlight--
          if (isTrial) member.onTrial = false
        }
      }
      throw new OutOfReachError('no core within reach', { cause })
    },
    replace,
    follow(follower) {
      followers.push(follower)
      for (const { core } of members) follower.added(core)
    },
    setAside: (core) => leaveAside(memberOf(core)),
    revive: (core) => heal(memberOf(core)),
    hasAnother: (core) => members.some((member) => member.core !== core && member.failures === 0),
    inFlight: (core) => memberOf(core).inFlight,
  }
}
