import { expect } from 'vitest'
import { type ChaosResult, inFlightAtKills } from './deliveries.ts'

/** Checks the guarantees of deliveries against the receiver's requests and the database. */
export function expectDeliveryGuarantees(
  result: ChaosResult,
  { destinations, leaseMs }: { destinations: number; leaseMs: number },
) {
  const { acknowledged, deliveries, requests, kills, doubles } = result
  // Each lead has exactly one delivery per destination.
  const ofLead = Map.groupBy(deliveries, ({ leadId }) => leadId)
  for (const leadId of acknowledged) expect(ofLead.get(leadId)).toHaveLength(destinations)
  for (const each of ofLead.values()) {
    expect(new Set(each.map(({ subscriptionId }) => subscriptionId)).size).toBe(each.length)
  }
  expect(deliveries.filter(({ status }) => status !== 'accepted')).toEqual([])

  // Each attempt has one outcome, which is the same in the database and at the receiver.
  for (const { attempts } of deliveries) {
    const outcomes = attempts.map(({ outcome }) => outcome?.responseStatus)
    expect([[200], [503, 200]]).toContainEqual(outcomes)
  }
  const written = deliveries.flatMap(({ attempts }) => attempts.map(({ correlationId }) => correlationId))
  expect(new Set(requests.map(({ correlationId }) => correlationId))).toEqual(new Set(written))

  // Only attempts that were in flight at a kill may be sent twice.
  expect(doubles).toBeLessThanOrEqual(inFlightAtKills(result))
  // Leases of a killed worker must end in time, so that other workers can claim its deliveries.
  for (const { victim, at, leasesEnd } of kills) {
    if (victim === 'worker') expect(leasesEnd).toBeLessThanOrEqual(at + leaseMs)
  }
}
