import fc from 'fast-check'
import { nastyText, nastyValue } from './nasty-values.ts'

type Json = unknown

/** A change that makes a valid value slightly invalid. */
type Change = (value: Json) => Json

const oneChange: fc.Arbitrary<Change> = fc
  .record({
    // Index of the nested value to change, modulo the number of nested values.
    place: fc.nat(),
    what: fc.constantFrom('replace', 'replace', 'remove', 'add', 'wrap', 'repeat', 'lengthen'),
    value: nastyValue,
    key: fc.oneof(nastyText, fc.constantFrom('__proto__', 'constructor', 'prototype', 'extra', 'sessionId')),
  })
  .map(
    ({ place, what, value, key }) =>
      (root) =>
        change(root, place, what, structuredClone(value), key),
  )

/** Generates a valid value with one to three changes at random places. */
export const nearlyGood = (good: Json): fc.Arbitrary<Json> =>
  fc
    .array(oneChange, { minLength: 1, maxLength: 3 })
    .map((changes) => changes.reduce((value, each) => each(value), structuredClone(good)))

/** Generates a valid body with some bytes changed, removed or inserted. */
export const brokenBytes = (good: Uint8Array): fc.Arbitrary<Buffer> =>
  fc
    .array(fc.record({ at: fc.nat(), what: fc.constantFrom('flip', 'cut', 'insert'), bytes: fc.uint8Array() }), {
      minLength: 1,
      maxLength: 4,
    })
    .map((edits) => {
      let bytes = Buffer.from(good)
      for (const { at, what, bytes: given } of edits) {
        const place = bytes.length === 0 ? 0 : at % bytes.length
        if (what === 'cut') bytes = bytes.subarray(0, place)
        else if (what === 'insert') bytes = Buffer.concat([bytes.subarray(0, place), given, bytes.subarray(place)])
        else if (bytes.length > 0) bytes = Buffer.from(bytes.map((byte, index) => (index === place ? ~byte : byte)))
      }
      return bytes
    })

function change(root: Json, place: number, what: string, value: Json, key: string): Json {
  const places = placesOf(root)
  const found = places[place % places.length]!
  const { holder, name } = found
  const old = holder === undefined ? root : holder[name]
  let next: Json = value
  if (what === 'add' && isObject(old)) next = { ...old, [key]: value }
  else if (what === 'wrap') next = [old]
  else if (what === 'repeat') next = [old, old]
  else if (what === 'lengthen' && typeof old === 'string') next = old.repeat(1 + (place % 50)) + key
  if (holder === undefined) return next
  if (what === 'remove') delete holder[name]
  else holder[name] = next
  return root
}

interface Place {
  /** Object or array that contains the nested value. Undefined for the root value. */
  holder: Record<string, Json> | undefined
  name: string
}

function placesOf(root: Json): Place[] {
  const places: Place[] = [{ holder: undefined, name: '' }]
  const walk = (value: Json, depth: number) => {
    if (typeof value !== 'object' || value === null || depth > 6) return
    const holder = value as Record<string, Json>
    for (const name of Object.keys(holder).slice(0, 50)) {
      places.push({ holder, name })
      walk(holder[name], depth + 1)
    }
  }
  walk(root, 0)
  return places
}

const isObject = (value: Json): value is Record<string, Json> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
