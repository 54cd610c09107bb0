import { beforeEach, describe, expect, it } from 'vitest'
import { testClient, testDatabase } from '../../test/support/test-database.ts'
import { createLeases, LeaseLost, whileHeld } from './leases.ts'

interface Job {
  _id: string
  nextAt?: Date
  fencingToken?: number
  steps?: number
}

const { name } = testDatabase()
const jobs = testClient().db(name).collection<Job>('jobs')
const leases = createLeases(jobs, { until: 'nextAt', token: 'fencingToken' })
const at = (second: number) => new Date(Date.UTC(2030, 0, 1) + second * 1000)
const take = (second: number) => leases.take({ now: at(second), until: at(second + 30) })
const step = { $inc: { steps: 1 } }

beforeEach(() => jobs.deleteMany({}))

describe('a lease', () => {
  it('belongs to one of many processes that ask at the same time, until it ends', async () => {
    await jobs.insertOne({ _id: 'j', nextAt: at(0) })
    const taken = await Promise.all(Array.from({ length: 5 }, () => take(1)))
    expect(taken.filter(Boolean)).toHaveLength(1)
    expect(await take(30)).toBeUndefined()
    expect((await take(31))?.lease.id).toBe('j')
  })

  it('that was taken over lets its former holder write, confirm and remove nothing', async () => {
    const former = (await leases.insert({ _id: 'j' }, at(30)))!
    await leases.write(former, step)
    const { lease } = (await take(31))!
    await expect(leases.write(former, step)).rejects.toThrow(LeaseLost)
    await expect(leases.confirm(former)).rejects.toThrow(LeaseLost)
    await leases.remove(former)
    expect(await leases.write(lease, step)).toMatchObject({ steps: 2 })
  })

  it('of a removed document is not held again when another process inserts the document again', async () => {
    const former = (await leases.insert({ _id: 'j' }, at(30)))!
    await leases.remove((await take(31))!.lease)
    const lease = await leases.insert({ _id: 'j' }, at(60))
    await expect(leases.write(former, step)).rejects.toThrow(LeaseLost)
    expect(await leases.write(lease!, step)).toMatchObject({ steps: 1 })
  })

  it('is taken from a holder of the previous version, which counted its tokens', async () => {
    await jobs.insertOne({ _id: 'j', nextAt: at(0), fencingToken: 1 })
    await take(1)
    expect(await jobs.countDocuments({ fencingToken: 1 })).toBe(0)
    // The previous version takes it back.
    await jobs.updateOne({ _id: 'j' }, { $inc: { fencingToken: 1 } })
    expect((await take(40))?.lease.id).toBe('j')
  })

  it('of a document without an end is free only where work begins without one', async () => {
    await jobs.insertOne({ _id: 'j' })
    expect(await take(1)).toBeUndefined()
    const beginning = createLeases(jobs, { until: 'nextAt', token: 'fencingToken', isFreeWithoutUntil: true })
    expect((await beginning.take({ now: at(1), until: at(2) }))?.lease.id).toBe('j')
    expect(await beginning.take({ now: at(1), until: at(2) })).toBeUndefined()
  })

  it('that is lost ends the work without an error; other errors stay errors', async () => {
    await whileHeld(Promise.reject(new LeaseLost()))
    await expect(whileHeld(Promise.reject(new Error('other')))).rejects.toThrow('other')
  })
})
