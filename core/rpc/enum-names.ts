/** Public names of an enum: the names of its values in lower case, without UNSPECIFIED. */
type NameIn<Enum> = Lowercase<Exclude<keyof Enum & string, 'UNSPECIFIED'>>

/** Returns the public name of an enum value; undefined for UNSPECIFIED and for unknown values. */
export function nameOf<Enum extends Record<number, string>>(names: Enum, value: number): NameIn<Enum> | undefined {
  return value === 0 ? undefined : (names[value]?.toLowerCase() as NameIn<Enum> | undefined)
}

/** Returns the enum value with this public name. */
export const enumValue = <Enum extends Record<string, string | number>>(values: Enum, name: NameIn<Enum>) =>
  values[name.toUpperCase()] as Enum[keyof Enum]
