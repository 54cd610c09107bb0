/**
 * The fields of a message type of the protos. An object that `satisfies Record<keyof
 * ProtoFields<Type>, unknown>` has them all: a field that is added to the proto and forgotten there
 * does not compile.
 */
export type ProtoFields<Type> = Omit<Type, '$typeName' | '$unknown'>

/** An object with every field of a type. An optional field may be undefined, but must be written. */
export type AllFields<Type> = { [Field in keyof Required<Type>]: Type[Field] }
