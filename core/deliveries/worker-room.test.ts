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
    const room = createWorkerRoom({ limit: 21, perDestination: 5 })
    expect([room.places(), room.placesFor('a')]).toEqual([21, 5])
    expect(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => reserveAll(room, name))).toEqual([5, 4, 3, 2, 2, 1])
    room.free('a')
    expect([room.placesFor('a'), room.placesFor('g')]).toEqual([0, 1])
    expect(room.taken()).toBe(16)
  })

  it('the room of a worker gives each destination at most a third of the free places', () => {
    const room = createWorkerRoom({ limit: 30, perDestination: 20 })
    const taken = Array.from({ length: 20 }, (_, index) => reserveAll(room, `d${index}`))
    expect(taken.slice(0, 4)).toEqual([7, 6, 4, 3])
    // The first destinations leave places for many others.
    expect(taken.filter((count) => count > 0).length).toBeGreaterThan(10)
  })

  it('the room of a worker has more places for a destination that answers quickly, and no more after a slow answer', () => {
    const room = createWorkerRoom({ limit: 50, perDestination: 10 })
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
    const room = createWorkerRoom({ limit: 10, perDestination: 1 })
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
    const room = createWorkerRoom({ limit: 50, perDestination: 2 })
    reserveAll(room, 'a')
    expect(room.free('a', 125)).toBe(true)
    expect(reserveAll(room, 'a')).toBe(1 + 4)
    expect(Array.from({ length: 4 }, () => room.free('a', 125))).toEqual([false, true, false, false])
    reserveAll(room, 'b')
    expect(room.free('b', 5_000)).toBe(true)
    // Nothing waits for this room.
    expect(room.free('b', 5_000)).toBe(false)
  })

  it('the room of a worker that stops has no place, not even in advance for a destination that answers quickly', () => {
    const room = createWorkerRoom({ limit: 50, perDestination: 10 })
    reserveAll(room, 'a')
    room.free('a', 1)
    room.resize({ limit: 0, perDestination: 1 })
    expect([room.places(), room.placesFor('a'), room.placesFor('b')]).toEqual([0, 0, 0])
    expect([room.reserve('a'), room.reserve('b')]).toEqual([false, false])
  })

  it('the room of a worker can shrink below the places in use, and grow again', () => {
    const room = createWorkerRoom({ limit: 30, perDestination: 10 })
    const taken = reserveAll(room, 'a')
    room.resize({ limit: 4, perDestination: 2 })
    expect(room.placesFor('b')).toBe(0)
    room.resize({ limit: 60, perDestination: 15 })
    expect(taken + reserveAll(room, 'a')).toBeGreaterThan(taken)
    expect([...room.destinations()]).toEqual(['a'])
  })
})
