import { clientNetwork, UNKNOWN_ADDRESS } from '../../platform/addresses/client-network.ts'
import { createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { shortHash } from '../keys/keyring.ts'
import { idsKey } from '../sessions/visitor-ids.ts'

/** The ban of one network because of one visitor. The database removes it when the ban ends. */
export interface NetworkBanDocument {
  /** Network and browser, so that a repeated ban replaces the earlier one. */
  _id: string
  /** Keyed hash of the address. */
  network: string
  /** The browser and the subject for which the ban was set. */
  visitorIds: string[]
  bannedAt: Date
  endsAt: Date
}

/**
 * Returns the keyed hash of a client's network on a connection: the IPv4 address, or the /64 prefix of the
 * IPv6 address. Undefined without an address.
 */
export async function networkOf(
  core: Core,
  connectionId: string,
  clientAddress: string | undefined,
): Promise<string | undefined> {
  const network = clientNetwork(clientAddress ?? '')
  // A ban of clients without an address would affect all of them.
  if (network === UNKNOWN_ADDRESS) return undefined
  return shortHash(await idsKey(core), 'network', connectionId, network)
}

/** Bans the network of a visitor with these ids. A repeat replaces the end of the ban. */
export async function banNetwork(
  { db, now }: Pick<Core, 'db' | 'now'>,
  network: string,
  visitorIds: string[],
  until: Date,
) {
  await db.networkBans.updateOne(
    { _id: `${network} ${visitorIds[0]}` },
    {
      $set: { network, bannedAt: new Date(now()), endsAt: until },
      $addToSet: { visitorIds: { $each: visitorIds } },
    },
    { upsert: true },
  )
}

const isBannedOf = perCore(({ db, now }) =>
  createBatchLoader(async (networks) => {
    const banned = { network: { $in: networks }, endsAt: { $gt: new Date(now()) } }
    const found = db.networkBans.find(banned, { projection: { network: 1 } })
    return new Map(await found.map(({ network }) => [network, true] as const).toArray())
  }),
)

export const isNetworkBanned = async (core: Core, network: string | undefined): Promise<boolean> =>
  network !== undefined && (await isBannedOf(core)(network)) === true

/** Returns the latest end of a ban of networks that was set for this browser or subject. */
export async function networkBannedUntil(core: Core, visitorIds: string[]): Promise<Date | undefined> {
  const banned = { visitorIds: { $in: visitorIds }, endsAt: { $gt: dateOf(core) } }
  return (await core.db.networkBans.findOne(banned, { sort: { endsAt: -1 } }))?.endsAt
}
