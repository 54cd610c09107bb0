import { create, type DescField, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema, timestampFromDate } from '@bufbuild/protobuf/wkt'
import type {
  PageContext as PageContextMessage,
  VisitorCredentials as VisitorCredentialsMessage,
} from '#proto/session/v1/visitor_pb.js'
import type { NameIn, ProtoFields } from '../../contract/proto-fields.ts'
import type { PageContext, VisitorCredentials } from '../sessions/model.ts'

export function nameOf<Enum extends Record<number, string>>(names: Enum, value: number): NameIn<Enum> | undefined {
  return value === 0 ? undefined : (names[value]?.toLowerCase() as NameIn<Enum> | undefined)
}

/** Returns the fields of a message as a plain object. */
export const fieldsOf = <M extends Message>({ $typeName: _, $unknown: __, ...fields }: M) => fields as ProtoFields<M>

export async function emptyAfter(work: Promise<unknown>) {
  await work
  return {}
}

/** Removes absent fields, so that they leave the stored ones unchanged. */
export const given = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>

/** Removes absent fields and empty texts. */
export const withoutEmpty = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''),
  ) as Partial<Fields>

/** A value of a message, as documents have it: a date, or the public name of an enum value. */
type Stored<T> = T extends Timestamp
  ? Date
  : T extends boolean | bigint | string | Uint8Array | { case: unknown }
    ? T
    : T extends readonly (infer Item)[]
      ? readonly Stored<Item>[]
      : T extends number
        ? `${number}` extends `${T}`
          ? T
          : T | string
        : T extends object
          ? T | StoredFields<T>
          : T
type StoredFields<T> = { [K in Exclude<keyof T, '$typeName' | '$unknown'>]?: Stored<T[K]> | undefined }

/**
 * Returns a message with the fields of a document that have the same names. The caller adds fields with other
 * names. Throws for an unknown name of an enum.
 */
export function toProto<Desc extends DescMessage>(
  schema: Desc,
  document: StoredFields<MessageShape<Desc>>,
): MessageShape<Desc> {
  const fields = document as Record<string, unknown>
  const present = schema.fields.filter(({ localName }) => fields[localName] !== undefined)
  const values = present.map((field) => [field.localName, toValue(field, fields[field.localName])])
  return create(schema, Object.fromEntries(values))
}

function toValue(field: DescField, value: unknown): unknown {
  if (field.fieldKind === 'list') return (value as unknown[]).map((item) => toItem(field, item))
  return field.fieldKind === 'map' ? value : toItem(field, value)
}

function toItem({ message, enum: names, name }: DescField, value: unknown): unknown {
  if (value instanceof Date) return timestampFromDate(value)
  if (names && typeof value === 'string') {
    const found = names.values.find(({ localName }) => localName === value.toUpperCase())
    if (!found) throw new Error(`the enum of ${name} has no value ${value}`)
    return found.number
  }
  const isPlain = message && message.typeName !== TimestampSchema.typeName && !('$typeName' in (value as object))
  return isPlain && message.file.proto.package !== 'google.protobuf' ? toProto(message, value as object) : value
}

export function fromCredentials(message: VisitorCredentialsMessage | undefined): VisitorCredentials {
  return { accessGrant: message?.accessGrant ?? '', origin: message?.origin ?? '' }
}

/** Returns a visitor's request with the credentials as the core checks them. */
export const ofVisitor = <Request extends { credentials?: VisitorCredentialsMessage }>({
  credentials,
  ...rest
}: Request) => ({ ...rest, credentials: fromCredentials(credentials) })

export function fromPageContext(message: PageContextMessage | undefined): PageContext | undefined {
  return message && { ...fieldsOf(message), viewport: message.viewport && fieldsOf(message.viewport) }
}
