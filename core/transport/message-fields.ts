import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { Code, ConnectError } from '@connectrpc/connect'

/** Smaller messages need little memory in any form. */
const uncheckedBytes = 64 * 1024
/** Fields and list items of a message. The largest valid message has about 10,000. */
const maxFields = 100_000

const fieldsByNumber = new WeakMap<DescMessage, Map<number, DescField>>()

/** Two bytes can encode a submessage that takes hundreds of bytes, so a limit of bytes alone is not enough. */
export function requireFewFields(message: DescMessage, bytes: Uint8Array) {
  if (bytes.length <= uncheckedBytes) return
  const reader = new BinaryReader(bytes)
  let left = maxFields

  function walk(desc: DescMessage, end: number) {
    const fields = fieldsOf(desc)
    while (reader.pos < end) {
      const [number, wireType] = reader.tag()
      left -= 1
      if (wireType === WireType.LengthDelimited) {
        const length = reader.uint32()
        const field = fields.get(number)
        if (field?.message && field.fieldKind !== 'map') walk(field.message, reader.pos + length)
        else {
          if (field?.fieldKind === 'list' && isPacked(field)) left -= length
          reader.pos += length
        }
      } else reader.skip(wireType, number)
      if (left < 0) throw new ConnectError('the message has too many fields', Code.ResourceExhausted)
    }
  }

  try {
    walk(message, bytes.length)
  } catch (error) {
    // The decoder reports bytes that are not a valid message.
    if (error instanceof ConnectError) throw error
  }
}

export function requireFewValues(bytes: Uint8Array) {
  let left = maxFields
  for (const byte of bytes) {
    if ((byte === comma || byte === openBrace || byte === openBracket) && --left < 0)
      throw new ConnectError('the message has too many fields', Code.ResourceExhausted)
  }
}

const [comma, openBrace, openBracket] = [0x2c, 0x7b, 0x5b]

const isPacked = ({ scalar }: DescField) => scalar !== ScalarType.STRING && scalar !== ScalarType.BYTES

function fieldsOf(desc: DescMessage) {
  const found = fieldsByNumber.get(desc) ?? new Map(desc.fields.map((field) => [field.number, field]))
  fieldsByNumber.set(desc, found)
  return found
}
