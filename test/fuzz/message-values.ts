import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { ScalarType } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { nastyTexts } from '../support/nasty-values.ts'
import type { KnownValues } from './schema-values.ts'

const maxDepth = 4

/** Generates messages of a protobuf type, in protobuf JSON. */
export function messagesOf(message: DescMessage, known: KnownValues, depth = 0): fc.Arbitrary<object> {
  if (message.typeName === 'google.protobuf.Timestamp') return fc.constant('2029-01-01T00:00:00Z') as never
  const members = message.members.map((member) => {
    if (member.kind === 'field') return fc.option(fieldOf(member, known, depth), { nil: {}, freq: 4 })
    return member.fields.length === 0
      ? fc.constant({})
      : fc.oneof(...member.fields.map((field) => fieldOf(field, known, depth)))
  })
  return fc.tuple(...members).map((parts) => Object.assign({}, ...parts))
}

function fieldOf(field: DescField, known: KnownValues, depth: number): fc.Arbitrary<object> {
  if (depth > maxDepth) return fc.constant({})
  const given = known[field.jsonName]
  const own = fieldValues(field, known, depth)
  const value = given === undefined ? own : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...given) }, own)
  return value.map((each) => ({ [field.jsonName]: each }))
}

function fieldValues(field: DescField, known: KnownValues, depth: number): fc.Arbitrary<unknown> {
  switch (field.fieldKind) {
    case 'message':
      return messagesOf(field.message, known, depth + 1)
    case 'enum':
      return fc.oneof(fc.constantFrom(...field.enum.values.map(({ name }) => name)), fc.integer({ min: -1, max: 99 }))
    case 'list': {
      const each =
        field.listKind === 'message'
          ? messagesOf(field.message, known, depth + 1)
          : field.listKind === 'enum'
            ? fc.constantFrom(...field.enum.values.map(({ name }) => name))
            : scalarsOf(field.scalar)
      return fc.array(each, { maxLength: 4 })
    }
    case 'map':
      return fc.dictionary(
        fc.string({ maxLength: 12 }),
        field.mapKind === 'scalar' ? scalarsOf(field.scalar) : fc.constant({}),
        { maxKeys: 4 },
      )
    case 'scalar':
      return scalarsOf(field.scalar)
  }
}

function scalarsOf(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.STRING:
      return fc.oneof(
        fc.string({ maxLength: 40, unit: 'grapheme' }),
        // Protobuf strings cannot contain lone surrogates.
        fc.constantFrom(...nastyTexts.filter((text) => text.isWellFormed())),
      )
    case ScalarType.BOOL:
      return fc.boolean()
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('base64'))
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return fc.oneof(
        fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e30, max: 1e30 }),
        fc.constantFrom('NaN', '-Infinity'),
      )
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return fc.oneof(fc.nat(200), fc.constantFrom(0, 2 ** 31, 2 ** 32 - 1))
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
      return fc.constantFrom('0', '1', '9223372036854775807')
    default:
      return fc.oneof(fc.nat(200), fc.constantFrom(0, -1, 2 ** 31 - 1))
  }
}
