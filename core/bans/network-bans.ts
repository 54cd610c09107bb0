import { clientNetwork } from '../../platform/addresses/client-network.ts'
import { UNKNOWN_ADDRESS } from '../../platform/addresses/client-network.ts'
import { createBatchLoader } from '../../platform/concurrency/batcher.ts'
import type { IdsKey } from '../keys/ids-key.ts'
import { shortHash } from '../keys/keyring.ts'
import type { NetworkBanStore } from './network-ban-store.ts'

/** Bans network addresses for a time. Stores only keyed hashes of addresses. */
export interface NetworkBans {
  /**
   * Returns the keyed hash of a client's network on a connection. The network is the IPv4 address,
   * or the /64 prefix of the IPv6 address. Returns undefined without an address.
   */
  networkOf(connectionId: string, clientAddress: string | undefined): Promise<string | undefined>
  /** Bans the network of a visitor with these ids. A repeat replaces the end of the ban. */
  ban(network: string, visitorIds: string[], until: Date): Promise<void>
  /** Lifts the bans of networks that were set for this browser or subject. */
  unban(visitorIds: string[]): Promise<void>
  isBanned(network: string | undefined): Promise<boolean>
  /** Returns the latest end of a ban of networks that was set for this browser or subject. */
  bannedUntil(visitorIds: string[]): Promise<Date | undefined>
}

export function createNetworkBans(dependencies: {
  store: NetworkBanStore
  idsKey: IdsKey
  now: () => number
}): NetworkBans {
  const { store, idsKey, now } = dependencies
  const loadBanned = createBatchLoader(async (networks) => {
    const banned = await store.banned(networks, new Date(now()))
    return new Map(networks.map((network) => [network, banned.has(network)]))
  })

  return {
    async networkOf(connectionId, clientAddress) {
      const network = clientNetwork(clientAddress ?? '')
      // A ban of clients without an address would affect all of them.
      if (network === UNKNOWN_ADDRESS) return undefined
      return shortHash(await idsKey(), 'network', connectionId, network)
    },
    ban: (network, visitorIds, until) => store.ban({ network, visitorIds, at: new Date(now()), until }),
    unban: (visitorIds) => store.unban(visitorIds),
    isBanned: async (network) => network !== undefined && (await loadBanned(network)) === true,
    bannedUntil: (visitorIds) => store.bannedUntil(visitorIds, new Date(now())),
  }
}
