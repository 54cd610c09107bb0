import { type TObject, type TProperties, type TSchema, Type } from 'typebox'

/** An object without any other field. */
export const Strict = <Properties extends TProperties>(
  properties: Properties,
  options: object = {},
): TObject<Properties> => Type.Object(properties, { additionalProperties: false, ...options })

/** Text without control characters and lone surrogates. Patterns are read in Unicode mode. */
const Line = (minLength: number, maxLength: number) =>
  Type.String({ minLength, maxLength, pattern: '^[^\\p{Cc}\\p{Cs}]*$' })

/** Stable per logical operation. */
export const OperationId = Type.String({ pattern: '^[A-Za-z0-9._:-]{1,128}$' })
export const Identifier = Line(1, 128)
export const OpaqueToken = Line(1, 512)
export const EventId = Line(0, 256)
export const Locale = Type.String({ maxLength: 35, pattern: '^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$' })

/** Bounds that are settings. The cores have the same ones, and the public configuration tells them. */
export interface Bounds {
  /** UTF-16 code units. */
  bodyMaxLength: number
  /** Of its JSON. */
  pageContextMaxBytes: number
  historyPageMax: number
}

/** UTF-16 code units, not only white space, no control characters but tab and newline, well formed. */
export const MessageBody = ({ bodyMaxLength }: Bounds) =>
  Type.String({
    minLength: 1,
    maxLength: bodyMaxLength,
    pattern: '^(?=\\s*\\S)(?:[\\t\\n]|[^\\p{Cc}\\p{Cs}])*$',
  })

/** Minimised page context (specification, section 2.3); the core cuts off what it does not keep. */
export const PageContext = ({ pageContextMaxBytes }: Bounds) =>
  Strict(
    {
      url: Type.String({ maxLength: 2048, pattern: '^[hH][tT][tT][pP][sS]?://[^\\s\\p{Cc}\\p{Cs}]+$' }),
      title: Type.Optional(Line(0, 256)),
      referrer: Type.Optional(Line(0, 2048)),
      viewport: Type.Optional(
        Strict({
          width: Type.Integer({ minimum: 0, maximum: 100_000 }),
          height: Type.Integer({ minimum: 0, maximum: 100_000 }),
        }),
      ),
    },
    {
      maxJsonBytes: pageContextMaxBytes,
      description: `Where the visitor is: at most ${pageContextMaxBytes} bytes. Query and fragment are cut off, the referrer is cut to its origin.`,
      examples: [{ url: 'https://shop.example/prices', title: 'Prices', viewport: { width: 1280, height: 720 } }],
    },
  )

/** RFC 3339, UTC, milliseconds. */
export const Time = Type.String({ format: 'date-time' })
export const Sequence = Type.Integer({ minimum: 0 })
export const NoQuery = Strict({})
export const OneOf = <const Names extends readonly string[]>(names: Names) =>
  Type.Unsafe<Names[number]>({ type: 'string', enum: names })

/** Text of an answer that is one of these. The answer's type stays `string`: the core says which. */
export const Named = (...names: string[]) => Type.String({ enum: names })

/** Body of every failure (specification, section 2.5). */
export const Envelope = Strict({
  code: Type.String(),
  retryable: Type.Boolean(),
  terminal: Type.Boolean(),
  retryAfter: Type.Optional(Type.Integer({ minimum: 1 })),
  correlationId: Type.String(),
  issues: Type.Optional(Type.Array(Strict({ path: Type.String(), rule: Type.String() }))),
})

/** The answers of a route: its own, and the envelope for every failure. */
export const Answers = <const Own extends Record<number, TSchema>>(own: Own) => ({
  ...own,
  '4xx': Envelope,
  '5xx': Envelope,
})
