import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { byKey } from '../../platform/concurrency/batcher.ts'
import type { Bus } from '../bus.ts'
import { invalid, ServiceError } from '../errors.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { Member, SignInLink, Team } from './model.ts'
import type { TeamStore } from './team-store.ts'

export type Teams = ReturnType<typeof createTeams>

const maxCached = 1_000
const maxActive = 200
/** Removed accounts that are still listed by name. */
const maxRemoved = 500
/** Prefix of the ids under which cores hear of changes of a team. */
const prefix = 'team '

/** The accounts of each workspace. A change takes effect on all cores within a second. */
export function createTeams({
  store,
  wakeups,
  bus,
  now,
}: {
  store: Pick<TeamStore, 'find' | 'replace'>
  wakeups: Pick<Wakeups, 'changing' | 'isCurrent'>
  bus: Bus
  now: () => number
}) {
  const teams = createLiveCache<Team>({
    bus,
    isCurrent: wakeups.isCurrent,
    maxEntries: maxCached,
    loadMany: async (keys) =>
      byKey(await store.find(keys.map((key) => key.slice(prefix.length))), (team) => prefix + team.workspaceId),
  })

  const list = async (workspaceId: string, isRoutine = false): Promise<Member[]> =>
    (await teams.get(prefix + workspaceId, isRoutine))?.members ?? []

  /** Changes the list of accounts. `next` may run several times. Errors: those of `next`. */
  const change = (workspaceId: string, next: (members: Member[]) => Member[]): Promise<Member[]> =>
    wakeups.changing([prefix + workspaceId], async () => {
      for (;;) {
        const [{ version, members: before } = { version: 0, members: [] }] = await store.find([workspaceId])
        const members = bounded(next(before))
        if (members === before) return before
        if (await store.replace({ workspaceId, version: version + 1, members })) return members
      }
    })

  /** Adds an account, unless there is one with this id. Errors: ValidationFailed. */
  async function add(workspaceId: string, account: Omit<Member, 'state' | 'joinedAt'>): Promise<Member> {
    const joined: Member = { ...account, state: 'active', joinedAt: new Date(now()) }
    const members = await change(workspaceId, (present) => {
      if (present.some(({ id }) => id === account.id)) return present
      requireFreeMail(present, account)
      if (present.filter(isActive).length >= maxActive) throw invalid('/operators', 'maxItems')
      return [...present, joined]
    })
    return members.find(({ id }) => id === account.id)!
  }

  return {
    list,
    change,

    /**
     * Keeps the name and address of an operator who signed in at the provider. A team without room is
     * not changed: such an operator signs in, and is not listed. Errors: PermissionDenied if the id is
     * of an account with a role.
     */
    async keepProvided(
      workspaceId: string,
      { id, name, mail }: { id: string; name: string; mail: string | undefined },
    ) {
      const same = (await list(workspaceId)).find((each) => each.id === id)
      if (same?.role) throw new ServiceError(ErrorCode.PERMISSION_DENIED)
      if (same && same.name === name && same.mail === mail) return
      await change(workspaceId, (present) => {
        const others = present.filter((each) => each.id !== id)
        if (others.filter(isActive).length >= maxActive) return present
        const known = present.find((each) => each.id === id)
        const free = mail !== undefined && others.every((each) => !isActive(each) || each.mail !== mail)
        const { joinedAt = new Date(now()), notifications } = known ?? {}
        const kept = notifications && isActive(known!) ? { notifications } : {}
        return [...others, { id, name, ...(free && { mail }), state: 'active', joinedAt, ...kept }]
      })
    },
    add,

    async find(workspaceId: string, id: string, isRoutine = false): Promise<Member | undefined> {
      return (await list(workspaceId, isRoutine)).find((member) => member.id === id && isActive(member))
    },

    /**
     * Returns the account of a link, and creates it if the link is an invitation. Errors:
     * Unauthenticated if the account is removed, ValidationFailed.
     */
    async enter({ workspaceId, operator: id, account: { role, mail } = {} as never }: SignInLink, name: string) {
      const known = (await list(workspaceId)).find((each) => each.id === id)
      const member = known ?? (role && (await add(workspaceId, { id, name, role, ...(mail && { mail }) })))
      if (!member || !isActive(member)) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      return member
    },
  }
}

export const isActive = ({ state }: Pick<Member, 'state'>): boolean => state === 'active'

export const activeOwners = (members: Member[]) => members.filter((each) => isActive(each) && each.role === 'owner')

/** Throws `ValidationFailed` if another active account has the address. */
export function requireFreeMail(members: Member[], { id, mail }: Pick<Member, 'id' | 'mail'>): void {
  if (mail !== undefined && members.some((each) => isActive(each) && each.id !== id && each.mail === mail))
    throw invalid('/mail', 'unique')
}

/** Drops the accounts that were removed first, if there are too many. */
function bounded(members: Member[]): Member[] {
  const surplus = members.filter((each) => !isActive(each)).slice(0, -maxRemoved)
  return surplus.length === 0 ? members : members.filter((each) => !surplus.includes(each))
}
