import { type ClaimRequest, createDeliveryClaims } from '../deliveries/delivery-claims.ts'
import type { PollResult } from '../deliveries/delivery-work.ts'
import type { ClaimedDelivery } from '../deliveries/webhook-requests.ts'
import { createCoreMetrics } from '../metrics.ts'

export const at = 1_000_000
type Dependencies = Parameters<typeof createDeliveryClaims>[0]

/** Creates claims over an in-memory queue that records the arguments of every call. */
export function newScene({ due = {} as Record<string, string[]>, later = [] as number[] } = {}) {
  const seen = {
    upcoming: 0,
    dueDestinations: 0,
    candidates: [] as unknown[],
    taken: [] as unknown[],
    released: [] as unknown[],
    held: [] as string[],
    renewed: [] as unknown[],
    polls: [] as PollResult<ClaimedDelivery[]>[],
    waits: [] as unknown[],
  }
  const scene = {
    seen,
    time: at,
    announced: 0,
    isCurrent: true,
    disabled: new Set<string>(),
    unsealed: new Set<string>(),
    bodyBytes: 10,
    tookOver: false,
    /** Returns the deliveries that this core claims before other cores do. */
    takes: (ids: string[]) => ids,
    onTake: () => {},
    random: () => 0,
    metrics: createCoreMetrics(),
  }
  const entries = () =>
    Object.entries(due).flatMap(([destination, ids]) => ids.map(() => ({ destination, dueAt: new Date(scene.time) })))
  const destinationOf = (id: string) => Object.keys(due).find((name) => due[name]!.includes(id))!
  const queue: Partial<Dependencies['queue']> = {
    async upcoming(limit) {
      seen.upcoming += 1
      return [...entries(), ...later.map((ms) => ({ destination: 'later', dueAt: new Date(at + ms) }))].slice(0, limit)
    },
    async dueDestinations() {
      seen.dueDestinations += 1
      return Object.keys(due)
    },
    async candidates(destinations, time, perDestination) {
      seen.candidates.push([[...destinations].sort(), time.getTime(), perDestination])
      return destinations.map((subscriptionId) => ({
        subscription: { subscriptionId, status: scene.disabled.has(subscriptionId) ? 'disabled' : 'active' },
        deliveryIds: (due[subscriptionId] ?? []).slice(0, perDestination),
      })) as never
    },
    async take(ids, { claimId, ...claim }) {
      seen.taken.push([ids, claim])
      scene.onTake()
      return scene.takes(ids).map((deliveryId) => ({
        deliveryId,
        leadId: 'lead',
        workspaceId: 'ws',
        subscriptionId: destinationOf(deliveryId),
        attempts: [],
        body: new Uint8Array(scene.bodyBytes),
        tookOver: scene.tookOver,
      }))
    },
    releaseClaim: async (ids, _claimId, time) => void seen.released.push([ids, time.getTime()]),
    async renew(claims, until) {
      seen.renewed.push(until)
      return new Map(claims.filter(({ claimId }) => claimId !== 'lost').map((each) => [each.deliveryId, 'clm_1']))
    },
  }
  const claims = createDeliveryClaims({
    queue: queue as Dependencies['queue'],
    holds: { hold: async (id) => void seen.held.push(id) } as Dependencies['holds'],
    work: {
      announced: () => scene.announced,
      async wait({
        until,
        signal,
        room,
        poll,
      }: {
        until: number
        signal: unknown
        room: unknown
        poll?: () => Promise<PollResult<ClaimedDelivery[]>>
      }) {
        seen.waits.push([until, signal, room])
        if (!poll) return undefined
        const polled = await poll()
        seen.polls.push(polled)
        return polled.found
      },
    } as unknown as Dependencies['work'],
    requests: {
      secretsOf: ({ subscriptionId }) =>
        scene.unsealed.has(subscriptionId)
          ? undefined
          : { url: 'https://crm.example/', active: 'whsec', all: ['whsec'], headers: {} },
      make: ({ deliveryId }, { subscription: { subscriptionId } }) =>
        ({ deliveryId, destination: subscriptionId }) as never,
    },
    isCurrent: () => scene.isCurrent,
    metrics: scene.metrics,
    settings: { leaseMs: 5000, deadlineMs: 10_000 },
    now: () => scene.time,
    random: () => scene.random(),
  })
  const request = (more: Partial<ClaimRequest> = {}): ClaimRequest => ({
    workerId: 'w',
    limit: 10,
    perDestination: 5,
    underWay: new Map(),
    waitMs: 100,
    onlyNew: false,
    signal: new AbortController().signal,
    ...more,
  })
  const claim = async (more?: Partial<ClaimRequest>) =>
    (await claims.claim(request(more))).map(({ deliveryId }) => deliveryId)
  return Object.assign(scene, { claim, request, claims, renew: claims.renew })
}
