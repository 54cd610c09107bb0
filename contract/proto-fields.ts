/**
 * The fields of a message type of the protos. If an object `satisfies Record<keyof
 * ProtoFields<Type>, unknown>`, it has all these fields. If a field is added to the proto but not
 * to the object, the object does not compile.
 */
export type ProtoFields<Type> = Omit<Type, '$typeName' | '$unknown'>

/** Public names of an enum of the protos: the names of its values in lower case, without UNSPECIFIED. */
export type NameIn<Enum> = Lowercase<Exclude<keyof Enum & string, 'UNSPECIFIED'>>

/** An object with every field of a type. An optional field may be undefined, but must be written. */
export type AllFields<Type> = { [Field in keyof Required<Type>]: Type[Field] }
