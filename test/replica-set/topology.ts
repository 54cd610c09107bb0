import type { Socket } from 'node:net'
import { type Document, ObjectId, Timestamp } from 'mongodb'
import type { MemberData } from './member-data.ts'

export interface Member {
  host: string
  role: 'primary' | 'secondary' | 'arbiter'
  /** False while the process of the member is stopped. */
  isUp: boolean
  /** Whether the member receives no new writes. */
  isLate: boolean
  /** Whether the other members cannot reach this member. Clients can. */
  isIsolated: boolean
  data: MemberData
  /** What a majority has, while a majority lacks the newest writes. Majority reads use it. */
  committed?: MemberData | undefined
  /** Number of times that the member became or stopped being the primary, or was rolled back. */
  roleChanges: number
  /** Counter of the topology version. */
  version: number
  /** Term and election of the member's own view, while it is or was the primary. */
  term: number
  connections: Set<Socket>
}

/** What all members of the double share. */
export interface Topology {
  members: Member[]
  /** Names of the databases that clients have written to. */
  databases: Set<string>
  term: number
  /** Resolves at the next change of a member. */
  changed(): Promise<void>
  notify(): void
  /** Advances the cluster time for a write, and returns it. */
  tick(isWrite: boolean): Timestamp
}

export function createTopology(): Topology {
  let next = Promise.withResolvers<void>()
  let time = Timestamp.fromNumber(0)
  return {
    members: [],
    databases: new Set(),
    term: 1,
    changed: () => next.promise,
    notify() {
      const { resolve } = next
      next = Promise.withResolvers()
      resolve()
    },
    tick(isWrite) {
      const seconds = Math.floor(Date.now() / 1000)
      if (time.t < seconds) time = new Timestamp({ t: seconds, i: 1 })
      else if (isWrite) time = new Timestamp({ t: time.t, i: time.i + 1 })
      return time
    },
  }
}

const votesNeeded = ({ members }: Topology) => Math.floor(members.length / 2) + 1

/** Whether the writes of this primary reach a majority of the voting members. An arbiter has no data. */
export function hasMajority(topology: Topology, primary: Member): boolean {
  const others = topology.members.filter(({ role, isUp, isLate, isIsolated }) => {
    return role === 'secondary' && isUp && !isLate && !isIsolated
  })
  return 1 + (primary.isIsolated ? 0 : others.length) >= votesNeeded(topology)
}

const processId = new ObjectId()

export const topologyVersion = ({ version }: Member): Document => ({ processId, counter: BigInt(version) })

/** Returns the member's answer to `hello`. */
export function helloOf({ members, term, tick }: Topology, member: Member): Document {
  const common = {
    helloOk: true,
    maxBsonObjectSize: 16_777_216,
    maxMessageSizeBytes: 48_000_000,
    maxWriteBatchSize: 100_000,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: 30,
    minWireVersion: 0,
    // MongoDB 7.0, the oldest supported version.
    maxWireVersion: 21,
    readOnly: false,
    topologyVersion: topologyVersion(member),
    ok: 1,
  }
  const isPrimary = member.role === 'primary'
  const [arbiters, hosts] = [true, false].map((isArbiter) =>
    members.filter(({ role }) => (role === 'arbiter') === isArbiter).map(({ host }) => host),
  )
  const seen = member.isIsolated ? [member] : members.filter(({ isIsolated, isUp }) => !isIsolated && isUp)
  const primary = seen.find(({ role }) => role === 'primary')
  const opTime = { ts: tick(false), t: BigInt(isPrimary ? member.term : term) }
  return {
    setName: 'double',
    setVersion: 1,
    hosts,
    ...(arbiters!.length > 0 && { arbiters }),
    ...(member.role === 'arbiter' && { arbiterOnly: true }),
    me: member.host,
    ...(primary && { primary: primary.host }),
    isWritablePrimary: isPrimary,
    ismaster: isPrimary,
    secondary: member.role === 'secondary',
    ...(isPrimary && { electionId: new ObjectId(`7fffffff${member.term.toString(16).padStart(16, '0')}`) }),
    lastWrite: { opTime, lastWriteDate: new Date(), majorityOpTime: opTime, majorityWriteDate: new Date() },
    ...common,
  }
}
