import type { Collection } from 'mongodb'

/**
 * The ban of one network because of one visitor. The database removes the document when the ban
 * ends.
 */
export interface NetworkBanDocument {
  /** Network and browser, so that a repeated ban replaces the earlier one. */
  _id: string
  network: string
  /** The browser and the subject for which the ban was set. */
  visitorIds: string[]
  bannedAt: Date
  endsAt: Date
}

export interface NetworkBanStore {
  ban(ban: { network: string; visitorIds: string[]; at: Date; until: Date }): Promise<void>
  unban(visitorIds: string[]): Promise<void>
  /** Returns the given networks that are banned. */
  banned(networks: string[], now: Date): Promise<Set<string>>
  bannedUntil(visitorIds: string[], now: Date): Promise<Date | undefined>
}

export function createNetworkBanStore({
  networkBans,
}: {
  networkBans: Collection<NetworkBanDocument>
}): NetworkBanStore {
  return {
    async ban({ network, visitorIds, at, until }) {
      await networkBans.updateOne(
        { _id: `${network} ${visitorIds[0]}` },
        { $set: { network, bannedAt: at, endsAt: until }, $addToSet: { visitorIds: { $each: visitorIds } } },
        { upsert: true },
      )
    },

    async unban(visitorIds) {
      await networkBans.deleteMany({ visitorIds: { $in: visitorIds } })
    },

    async banned(networks, now) {
      const found = networkBans.find(
        { network: { $in: networks }, endsAt: { $gt: now } },
        { projection: { network: 1 } },
      )
      return new Set(await found.map(({ network }) => network).toArray())
    },

    async bannedUntil(visitorIds, now) {
      const [latest] = await networkBans
        .find({ visitorIds: { $in: visitorIds }, endsAt: { $gt: now } })
        .sort({ endsAt: -1 })
        .limit(1)
        .toArray()
      return latest?.endsAt
    },
  }
}
