import { describe, expect, it } from 'vitest'
import { createWorkerRoom } from './worker-room.ts'

type Room = ReturnType<typeof createWorkerRoom>
const reserveAll = (room: Room, destination: string) => {
  let count = 0
  while (room.reserve(destination)) count += 1
  return count
}

describe('the room of a worker', () => {
  it('the room of a worker ends at its limit in all and per destination', () => {
    const room = createWorkerRoom({ limit: 12, perDestination: 5 })
    expect([room.places(), room.placesFor('a')]).toEqual([12, 5])
    expect(['a', 'b', 'c', 'd'].map((name) => reserveAll(room, name))).toEqual([5, 5, 2, 0])
    room.free('a')
    expect([room.placesFor('a'), room.placesFor('b'), room.placesFor('c')]).toEqual([1, 0, 1])
    expect(room.taken()).toBe(11)
  })

  it('the room of a worker gives each destination at most a third of the free places', () => {
    const room = createWorkerRoom({ limit: 30, perDestination: 20, ofStream: true })
    const taken = Array.from({ length: 20 }, (_, index) => reserveAll(room, `d${index}`))
    expect(taken.slice(0, 4)).toEqual([7, 6, 4, 3])
    // The first destinations leave places for many others.
    expect(taken.filter((count) => count > 0).length).toBeGreaterThan(10)
  })

  it('the room of a worker has more places for a destination that answers quickly, and no more after a slow answer', () => {
    const room = createWorkerRoom({ limit: 50, perDestination: 10, ofStream: true })
    expect(reserveAll(room, 'a')).toBe(10)
    room.free('a', 50)
    expect(reserveAll(room, 'a')).toBe(1 + 50)
    room.free('a', 1)
    expect(reserveAll(room, 'a')).toBe(1 + 50)
    room.free('a', 10_000)
    expect(room.placesFor('a')).toBe(0)
    // The deliveries in advance use up no places of others.
    expect(reserveAll(room, 'b')).toBe(10)
  })

  it('the room of a worker has one more place for each new destination while answers are quick, for half as many as it sends at once', () => {
    const room = createWorkerRoom({ limit: 10, perDestination: 1, ofStream: true })
    const newOnes = (name: string) =>
      Array.from({ length: 2_000 }, (_, index) => reserveAll(room, `${name}${index}`)).reduce(
        (sum, count) => sum + count,
      )
    room.reserve('a')
    expect(newOnes('before')).toBe(9)
    room.free('a', 5)
    expect(newOnes('quick')).toBe(1 + 5)
    room.free('before0', 10_000)
    expect(newOnes('slow')).toBe(1)
  })

  it('the room of a worker asks for more when half of the deliveries in advance are left, or at once if there are none', () => {
    const room = createWorkerRoom({ limit: 50, perDestination: 2, ofStream: true })
    reserveAll(room, 'a')
    expect(room.free('a', 125)).toBe(true)
    expect(reserveAll(room, 'a')).toBe(1 + 4)
    expect(Array.from({ length: 4 }, () => room.free('a', 125))).toEqual([false, true, false, false])
    reserveAll(room, 'b')
    expect(room.free('b', 5_000)).toBe(true)
    // Nothing waits for this room.
    expect(room.free('b', 5_000)).toBe(false)
  })

  it('the room of a worker can shrink below the places in use, and grow again', () => {
    const room = createWorkerRoom({ limit: 10, perDestination: 10 })
    expect(reserveAll(room, 'a')).toBe(10)
    room.resize({ limit: 4, perDestination: 2 })
    expect(room.places()).toBe(0)
    room.resize({ limit: 20, perDestination: 15 })
    expect(reserveAll(room, 'a')).toBe(5)
    expect([...room.destinations()]).toEqual(['a'])
  })

  it('the room of a claim counts the deliveries that the worker already has, and those it takes in advance', () => {
    const room = createWorkerRoom({
      limit: 20,
      perDestination: 5,
      underWay: new Map([['a', 3]]),
      ahead: new Map([['b', 4]]),
    })
    expect(['a', 'b', 'c'].map((name) => reserveAll(room, name))).toEqual([2, 9, 5])
  })
})
