import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import type { CommandContext } from './commands.ts'
import { createFaults, type Faults } from './faults.ts'
import { copyData, dropData, firstData, type MemberData } from './member-data.ts'
import { serveMember } from './member-server.ts'
import { createTopology, hasMajority, type Member } from './topology.ts'

export interface ReplicaSet {
  /** URI of the replica set, without a database name. */
  uri: string
  members: readonly Member[]
  faults: Faults
  primary(): Member
  secondaries(): Member[]
  /** Elects a secondary. The former primary answers as a secondary, or also closes its connections. */
  stepDown(how?: { closes?: boolean; electionMs?: number }): Promise<void>
  /** Cuts the primary off from the others, which elect another. Clients still reach the former one. */
  isolatePrimary(electionMs?: number): Promise<void>
  /** Ends the isolation. The isolated member rolls back what no majority had. */
  rejoin(): Promise<void>
  /** Stops the copying of writes to these members, until `catchUp`. */
  holdBack(members: Member[]): Promise<void>
  catchUp(): Promise<void>
  /** Stops the process of a member. If it was the primary, the others elect another. */
  stop(member: Member, electionMs?: number): Promise<void>
  /** Starts a member again. It rolls back what no majority had. */
  start(member: Member): Promise<void>
  close(): Promise<void>
}

export interface ReplicaSetOptions {
  hasArbiter?: boolean
}

const defaultElectionMs = 300
/** Time after which an isolated primary gives up its role. A real one does so after 10 s. */
const isolatedPrimaryMs = 1_500

/**
 * A test double of a replica set of three members. The members share one engine. A fault that needs different data on the members copies the data.
 * docs/testing.md lists what the double does not prove.
 */
export async function startReplicaSet(
  engineUri: string,
  { hasArbiter = false }: ReplicaSetOptions = {},
): Promise<ReplicaSet> {
  const socketPath = decodeURIComponent(new URL(engineUri).host)
  const client = new MongoClient(engineUri)
  const topology = createTopology()
  const { members } = topology
  const faults = createFaults()
  /** Held while data is copied. */
  let copying = Promise.resolve()
  const writes = new Set<Promise<unknown>>()
  const context: CommandContext = {
    topology,
    faults,
    async writing(write) {
      await copying
      const running = write()
      writes.add(running)
      return running.finally(() => writes.delete(running))
    },
    stepDown: () => void stepDown(),
  }

  const data = firstData()
  const servers = await Promise.all(
    [0, 1, 2].map(async (index) => {
      const isArbiter = hasArbiter && index === 2
      const member: Member = {
        host: '',
        role: isArbiter ? 'arbiter' : index === 0 ? 'primary' : 'secondary',
        isUp: true,
        isLate: false,
        isIsolated: false,
        data,
        roleChanges: 0,
        version: 1,
        term: 1,
        connections: new Set(),
      }
      members[index] = member
      const server = serveMember(context, member, socketPath).listen(0, '127.0.0.1')
      await once(server, 'listening')
      member.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
      return server
    }),
  )

  const primary = () => members.filter(({ role }) => role === 'primary').toSorted((one, two) => two.term - one.term)[0]!
  const secondaries = () => members.filter(({ role, isIsolated }) => role === 'secondary' && !isIsolated)

  /** Changes are made one after the other. */
  let last: Promise<unknown> = Promise.resolve()
  function inTurn(change: () => Promise<void>): Promise<void> {
    const turn = last.then(change).then(dropUnused)
    last = turn.catch(() => {})
    return turn
  }

  /**
   * Makes a change after which members may lack writes. Copies the data before, so that these members and
   * the majority keep it as it is.
   */
  async function separate(change: (separated: MemberData) => void) {
    const { promise, resolve } = Promise.withResolvers<void>()
    copying = promise
    try {
      await Promise.allSettled(writes)
      const separated = await copyData(client, topology.databases, primary().data)
      known.add(separated)
      change(separated)
      if (!hasMajority(topology, primary())) primary().committed ??= separated
    } finally {
      resolve()
    }
    announce()
  }

  /** Gives the primary's data to all members that receive writes. */
  function synchronize() {
    const now = primary()
    for (const member of secondaries()) if (member.isUp && !member.isLate) member.data = now.data
    if (hasMajority(topology, now)) now.committed = undefined
    announce()
  }

  function announce() {
    for (const member of members) member.version += 1
    topology.notify()
  }

  function disconnect(member: Member) {
    for (const socket of member.connections) socket.resetAndDestroy()
  }

  /** Ends the role of a primary. If it had writes that the new primary lacks, it rolls them back. */
  function demote(member: Member, to: MemberData) {
    member.role = 'secondary'
    member.roleChanges += 1
    member.committed = undefined
    member.isIsolated = false
    if (member.data !== to) disconnect(member)
    member.data = to
  }

  function resign(member: Member) {
    member.role = 'secondary'
    member.roleChanges += 1
    announce()
  }

  async function elect(electionMs: number) {
    const old = primary()
    const candidates = secondaries().filter(({ isUp }) => isUp)
    const next = candidates.find(({ isLate }) => !isLate) ?? candidates[0]
    if (!next) throw new Error('no member can be elected')
    if (!old.isIsolated) demote(old, next.data)
    // A majority read at the isolated member does not return writes of the next primary.
    else old.committed = await copyData(client, topology.databases, next.data)
    announce()
    await delay(electionMs)
    topology.term += 1
    for (const member of candidates) member.isLate = false
    Object.assign(next, { role: 'primary', roleChanges: next.roleChanges + 1, term: topology.term })
    synchronize()
  }

  async function stepDown({ closes = false, electionMs = defaultElectionMs } = {}) {
    return inTurn(async () => {
      const old = primary()
      const election = elect(electionMs)
      if (closes) disconnect(old)
      await election
    })
  }

  async function dropUnused() {
    const used = new Set(members.flatMap(({ data, committed }) => [data, committed]))
    for (const each of known) {
      if (used.has(each)) continue
      known.delete(each)
      await dropData(client, topology.databases, each)
    }
    for (const each of used) if (each) known.add(each)
  }
  const known = new Set<MemberData>([data])

  const hosts = members.map(({ host }) => host).join(',')
  return {
    uri: `mongodb://${hosts}/?replicaSet=double`,
    members,
    faults,
    primary,
    secondaries,
    stepDown,

    isolatePrimary: (electionMs = defaultElectionMs) =>
      inTurn(async () => {
        const old = primary()
        await separate((separated) => {
          old.isIsolated = true
          for (const member of secondaries()) member.data = separated
        })
        await elect(electionMs)
        setTimeout(() => old.isIsolated && resign(old), isolatedPrimaryMs).unref()
      }),

    rejoin: () =>
      inTurn(async () => {
        for (const member of members) if (member.isIsolated) demote(member, primary().data)
        synchronize()
      }),

    holdBack: (late) =>
      inTurn(() =>
        separate((separated) => {
          for (const member of late) Object.assign(member, { isLate: true, data: separated })
        }),
      ),

    catchUp: () =>
      inTurn(async () => {
        for (const member of members) member.isLate = false
        synchronize()
      }),

    stop: (member, electionMs = defaultElectionMs) =>
      inTurn(async () => {
        const wasPrimary = member.role === 'primary'
        if (wasPrimary) {
          stopNow(member)
          return elect(electionMs)
        }
        const others = secondaries().filter((other) => other !== member && other.isUp && !other.isLate)
        if (others.length === 0) return separate(() => stopNow(member))
        stopNow(member)
        announce()
      }),

    start: (member) =>
      inTurn(async () => {
        member.isUp = true
        if (member.role === 'secondary') member.data = primary().data
        synchronize()
      }),

    async close() {
      await last
      for (const member of members) {
        member.isUp = false
        disconnect(member)
      }
      announce()
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
      await client.close()
    },
  }

  function stopNow(member: Member) {
    member.isUp = false
    disconnect(member)
  }
}
