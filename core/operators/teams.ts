import { byKey } from '../../platform/concurrency/batcher.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { liveCacheOf } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import type { Member, Role, SignInLink, Team } from './model.ts'
import operatorTexts from './operator-texts.json' with { type: 'json' }

export type TeamDocument = { _id: string } & Team

const maxCached = 1_000
const maxActive = 200
/** Maximum number of removed accounts that are still listed by name. */
const maxRemoved = 500
/** Prefix of the ids in wake-ups about teams. */
const prefix = 'team '

/** Cached accounts by workspace. A change takes effect on all cores within a second. */
export const teamsOf = perCore((core) =>
  liveCacheOf<Team>(core, {
    maxEntries: maxCached,
    loadMany: async (keys) =>
      byKey(
        await core.db.teams.find({ _id: { $in: keys.map((key) => key.slice(prefix.length)) } }).toArray(),
        (team) => prefix + team.workspaceId,
      ),
  }),
)

export const listMembers = async (core: Core, workspaceId: string, isRoutine = false): Promise<Member[]> =>
  (await teamsOf(core).get(prefix + workspaceId, isRoutine))?.members ?? []

/** Returns an active account. A removed account is undefined, too. */
export const findMember = async (core: Core, workspaceId: string, id: string, isRoutine = false) =>
  (await listMembers(core, workspaceId, isRoutine)).find((member) => member.id === id && isActive(member))

/** Changes the list of accounts. `next` may run several times. Errors: those of `next`. */
export const changeTeam = (core: Core, workspaceId: string, next: (members: Member[]) => Member[]): Promise<Member[]> =>
  wakeupsOf(core).changing([prefix + workspaceId], async () => {
    for (;;) {
      const { version, members: before } = (await core.db.teams.findOne({ _id: workspaceId })) ?? {
        version: 0,
        members: [],
      }
      const members = bounded(next(before))
      if (members === before) return before
      if (await replaceTeam(core, { workspaceId, version: version + 1, members })) return members
    }
  })

/** Stores a team. Returns false if the stored team has another version than the one before it. */
async function replaceTeam({ db }: Core, team: Team) {
  const { workspaceId: _id, version } = team
  if (version === 1) return insertOnce(db.teams, { _id, ...team })
  return (await db.teams.replaceOne({ _id, version: version - 1 }, team)).modifiedCount === 1
}

/** Whether no account has this id. Errors: `ValidationFailed` if it is new, and its address is taken or the team full. */
export function isNewMember(members: Member[], account: Pick<Member, 'id' | 'mail'>) {
  if (members.some(({ id }) => id === account.id)) return false
  requireFreeMail(members, account)
  if (members.filter(isActive).length >= maxActive) throw invalid('/operators', 'maxItems')
  return true
}

/** Adds an account. Changes nothing if there is one with this id. Errors: `ValidationFailed`. */
export async function addMember(
  core: Core,
  workspaceId: string,
  account: Omit<Member, 'state' | 'joinedAt'>,
): Promise<Member> {
  const joined: Member = { ...account, state: 'active', joinedAt: dateOf(core) }
  const members = await changeTeam(core, workspaceId, (present) =>
    isNewMember(present, account) ? [...present, joined] : present,
  )
  return members.find(({ id }) => id === account.id)!
}

/**
 * Stores the name and address of an operator of the provider. If the team is full, the operator signs in but is
 * not listed. Errors: `PermissionDenied` if the id is of an account with a role.
 */
export async function keepProvidedMember(
  core: Core,
  workspaceId: string,
  { id, name, mail }: { id: string; name: string; mail?: string | undefined },
) {
  const same = (await listMembers(core, workspaceId)).find((each) => each.id === id)
  if (same?.role) throw new ServiceError('PermissionDenied')
  if (same && same.name === name && same.mail === mail) return
  await changeTeam(core, workspaceId, (present) => {
    const others = present.filter((each) => each.id !== id)
    if (others.filter(isActive).length >= maxActive) return present
    const known = present.find((each) => each.id === id)
    const free = !isTaken(present, { id, mail })
    const { joinedAt = dateOf(core) } = known ?? {}
    const { notifications, language }: Partial<Member> = known && isActive(known) ? known : {}
    return [...others, { id, name, ...(free && { mail }), state: 'active', joinedAt, notifications, language }]
  })
}

export const isActive = ({ state }: Pick<Member, 'state'>): boolean => state === 'active'

export const activeOwners = (members: Member[]) => members.filter((each) => isActive(each) && each.role === 'owner')

/** Whether the account that made an invitation is still an owner, or of the provider. True for other links. */
export const isLinkUsable = (members: Member[], { tokenId, account }: Pick<SignInLink, 'tokenId' | 'account'>) =>
  !account?.invitedBy ||
  !!tokenId ||
  members.some((each) => each.id === account.invitedBy && isActive(each) && (each.role ?? 'owner') === 'owner')

/** Whether another active account has the address, or one that differs only in case (`ss` and `ß` do). */
const isTaken = (members: Member[], { id, mail }: Pick<Member, 'id' | 'mail'>) =>
  mail !== undefined &&
  members.some((each) => isActive(each) && each.id !== id && each.mail?.toUpperCase() === mail.toUpperCase())

/** Errors: `ValidationFailed` if another active account has the address. */
export function requireFreeMail(members: Member[], member: Pick<Member, 'id' | 'mail'>) {
  if (isTaken(members, member)) throw invalid('/mail', 'unique')
}

/** Drops the accounts that were removed first, if there are more than `maxRemoved`. */
function bounded(members: Member[]) {
  const surplus = members.filter((each) => !isActive(each)).slice(0, -maxRemoved)
  return surplus.length === 0 ? members : members.filter((each) => !surplus.includes(each))
}

const ownersScopes = ['workspaces:write', 'subscriptions:write', 'visitors:export', 'visitors:erase', 'messages:redact']

export const scopesOfRole: Record<Role, string[]> = {
  owner: [...operatorScopes],
  operator: [...operatorScopes].filter((scope) => !ownersScopes.includes(scope)),
  viewer: [...operatorScopes].filter((scope) => scope.endsWith(':read')),
}

/** Returns the texts of pushes and mails to an operator; in English if the language is unknown. */
export const operatorTextsOf = ({ language = 'en' }: Pick<Member, 'language'> = {}): typeof operatorTexts.en =>
  operatorTexts[language]
