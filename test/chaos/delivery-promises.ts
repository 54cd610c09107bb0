import { expect } from 'vitest'
import { type ChaosResult, inFlightAtKills } from './deliveries.ts'

/** What is promised of deliveries, whatever is killed: held against what the receiver saw and what the cores wrote down. */
export function expectPromisesKept(
  result: ChaosResult,
  { destinations, leaseMs }: { destinations: number; leaseMs: number },
) {
  const { acknowledged, deliveries, requests, kills, doubles } = result
  // None is lost, and none is made twice.
  const ofLead = Map.groupBy(deliveries, ({ leadId }) => leadId)
  for (const leadId of acknowledged) expect(ofLead.get(leadId)).toHaveLength(destinations)
  for (const each of ofLead.values()) {
    expect(new Set(each.map(({ subscriptionId }) => subscriptionId)).size).toBe(each.length)
  }
  expect(deliveries.filter(({ status }) => status !== 'accepted')).toEqual([])

  // Each attempt has one outcome, in the books as at the receiver.
  for (const { attempts } of deliveries) {
    const outcomes = attempts.map(({ outcome }) => outcome?.responseStatus)
    expect([[200], [503, 200]]).toContainEqual(outcomes)
  }
  const written = deliveries.flatMap(({ attempts }) => attempts.map(({ correlationId }) => correlationId))
  expect(new Set(requests.map(({ correlationId }) => correlationId))).toEqual(new Set(written))

  // What went out twice was in flight when something died.
  expect(doubles).toBeLessThanOrEqual(inFlightAtKills(result))
  // And was free for others when its lease was over.
  for (const { victim, at, leasesEnd } of kills) {
    if (victim === 'worker') expect(leasesEnd).toBeLessThanOrEqual(at + leaseMs)
  }
}
