import type { Message as ProtoMessage } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import type { onRouteHookHandler } from 'fastify'
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox'
import { contractLimits, operationIdForm } from '../../contract/limits.ts'
import type { ProtoFields } from '../../contract/proto-fields.ts'

export const Strict = <Properties extends TProperties>(
  properties: Properties,
  options: object = {},
): TObject<Properties> => Type.Object(properties, { additionalProperties: false, ...options })

/** Code does not compile if a field of the proto has no schema and is not in `Left`. */
export type SchemasOf<Type, Left extends keyof Type = never> = Record<keyof Omit<ProtoFields<Type>, Left>, TSchema>

export const Text = Type.String()
export const OptionalText = Type.Optional(Text)

/** Schema of a message whose fields all have the same schema. */
export const FieldsOf = <Message, Field extends TSchema>(message: GenMessage<Message & ProtoMessage>, field: Field) =>
  Strict(
    Object.fromEntries(message.fields.map(({ localName }) => [localName, field])) as Record<
      keyof ProtoFields<Message> & string,
      Field
    >,
  )

/** Matches texts without control characters or lone surrogates. Ajv runs it in Unicode mode. */
const LINE = '^[^\\p{Cc}\\p{Cs}]*$'

/**
 * Matches texts that are not only white space. Excludes lone surrogates, and control characters other
 * than tab and newline.
 */
const TEXT = '^(?=\\s*\\S)(?:[\\t\\n]|[^\\p{Cc}\\p{Cs}])*$'

const WELL_FORMED = '^\\P{Cs}*$'

/**
 * Equivalents for the API document, without Unicode properties and lookaheads, which many languages lack.
 * They accept lone surrogates, which valid UTF-8 cannot contain.
 */
export const portablePatterns: Record<string, string> = {
  [WELL_FORMED]: '^[\\s\\S]*$',
  [LINE]: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
  [TEXT]: '^[^\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]*$',
}

export const WellFormed = () => Type.String({ pattern: WELL_FORMED })

export const Line = (minLength: number, maxLength: number) => Type.String({ minLength, maxLength, pattern: LINE })

/** A retry of the operation sends the same id. */
export const OperationId = Type.String({ pattern: operationIdForm.source })
export const Identifier = Line(1, 128)
export const OpaqueToken = Line(1, 512)
export const EventId = Line(0, 256)
/** The core repairs or drops an invalid locale. */
export const Locale = Type.String({
  description: 'Locale tag (BCP 47). `de_DE` is read as `de-DE`; an invalid tag is dropped.',
})

export const MessageBody = Type.String({
  minLength: 1,
  maxLength: contractLimits.bodyMaxLength,
  pattern: TEXT,
  description: 'CRLF, CR and the soft line ends U+000B, U+000C, U+0085, U+2028 and U+2029 are converted to LF first.',
})

/** The core repairs values. The schema rejects only unknown fields, wrong types and too large objects. */
export const PageContext = Strict(
  {
    url: Type.String({ description: 'http or https. Query, fragment and user info are removed.' }),
    title: Type.Optional(Type.String({ description: 'Cut to 256 code points.' })),
    referrer: Type.Optional(Type.String({ description: 'Cut to its origin.' })),
    viewport: Type.Optional(Strict({ width: Type.Number(), height: Type.Number() })),
  },
  {
    maxJsonBytes: contractLimits.pageContextSentMaxBytes,
    description: `The page of the visitor: at most ${contractLimits.pageContextSentMaxBytes} bytes. No value is rejected: control characters and lone surrogates are removed, long text is cut, and an invalid url, referrer or viewport is dropped.`,
    examples: [{ url: 'https://shop.example/prices', title: 'Prices', viewport: { width: 1280, height: 720 } }],
  },
)
export type PageContext = Static<typeof PageContext>

export const Time = Type.String({ format: 'date-time' })
export const Score = Type.Integer({ minimum: 1, maximum: contractLimits.ratingScoreMax })
export const Sequence = Type.Integer({ minimum: 0 })
export const OneOf = <const Names extends readonly string[]>(names: Names) =>
  Type.Unsafe<Names[number]>({ type: 'string', enum: names })

/** A text of an answer. Its type stays `string`, because the value comes from the core. */
export const Named = (...names: string[]) => Type.String({ enum: names })

export const refuseQuery: onRouteHookHandler = (route) => {
  route.schema = { querystring: Strict({}), ...route.schema }
}

/** Body of every failure (specification, section 2.5). */
export const Envelope = Strict({
  code: Text,
  retryable: Type.Boolean(),
  terminal: Type.Boolean(),
  retryAfter: Type.Optional(Type.Integer({ minimum: 1 })),
  correlationId: Text,
  issues: Type.Optional(Type.Array(Strict({ path: Text, rule: Text }))),
})
