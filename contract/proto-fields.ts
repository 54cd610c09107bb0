/**
 * If a proto gets a new field, an object that `satisfies Record<keyof ProtoFields<Type>, unknown>`
 * without this field does not compile.
 */
export type ProtoFields<Type> = Omit<Type, '$typeName' | '$unknown'>

/** The names of an enum's values in lower case, without UNSPECIFIED. */
export type NameIn<Enum> = Lowercase<Exclude<keyof Enum & string, 'UNSPECIFIED'>>

/** All fields of a type. An optional field may be undefined, but must be written. */
export type AllFields<Type> = { [Field in keyof Required<Type>]: Type[Field] }
