import type { Collection } from 'mongodb'
import { insertOnce } from '../mongodb/insert-each.ts'
import type { Passkey, Team } from './model.ts'

export type TeamDocument = { _id: string } & Team
export type PasskeyDocument = { _id: string } & Omit<Passkey, 'id'>

export type TeamStore = ReturnType<typeof createTeamStore>

/** Accounts and passkeys. */
export function createTeamStore({
  teams,
  passkeys,
}: {
  teams: Collection<TeamDocument>
  passkeys: Collection<PasskeyDocument>
}) {
  return {
    find: (workspaceIds: string[]): Promise<Team[]> => teams.find({ _id: { $in: workspaceIds } }).toArray(),

    /** Returns at most five teams in which an account has the address. */
    withMail: (mail: string): Promise<Team[]> => teams.find({ 'members.mail': mail }).limit(5).toArray(),

    /** Stores a team. Returns false if the stored team has another version than the one before it. */
    async replace(team: Team): Promise<boolean> {
      const { workspaceId: _id, version } = team
      if (version === 1) return insertOnce(teams, { _id, ...team })
      return (await teams.replaceOne({ _id, version: version - 1 }, team)).modifiedCount === 1
    },

    /** Returns false if the passkey is known already. */
    addPasskey: ({ id, ...passkey }: Passkey): Promise<boolean> => insertOnce(passkeys, { _id: id, ...passkey }),

    async findPasskey(id: string): Promise<Passkey | undefined> {
      const found = await passkeys.findOne({ _id: id })
      return found ? withId(found) : undefined
    },

    async passkeysOf(workspaceId: string, operator?: string): Promise<Passkey[]> {
      const found = passkeys.find({ workspaceId, ...(operator !== undefined && { operator }) }).sort({ createdAt: 1 })
      return (await found.toArray()).map(withId)
    },

    /** Returns false if the passkey was removed, or another sign-in has used this counter. */
    async usePasskey({ id, counter }: Passkey, next: number, usedAt: Date): Promise<boolean> {
      const used = await passkeys.updateOne({ _id: id, counter }, { $set: { counter: next, usedAt } })
      return used.matchedCount === 1
    },

    async removePasskeys(workspaceId: string, operator: string, id?: string): Promise<void> {
      await passkeys.deleteMany({ workspaceId, operator, ...(id !== undefined && { _id: id }) })
    },
  }
}

const withId = ({ _id, ...rest }: PasskeyDocument): Passkey => ({ ...rest, id: _id })
