import fc from 'fast-check'

type Arbitraries<Values extends unknown[]> = { [Index in keyof Values]: fc.Arbitrary<Values[Index]> }
type Options = fc.Parameters<unknown>

/** Checks that the property holds for generated values: one of each arbitrary. */
export function forAll<Values extends unknown[]>(
  arbitraries: [...Arbitraries<Values>],
  options: Options,
  property: (...values: Values) => unknown,
): void {
  const values = fc.tuple(...arbitraries) as unknown as fc.Arbitrary<Values>
  fc.assert(
    fc.property(values, (each) => property(...each) as boolean),
    options,
  )
}

/** Like `forAll`, for a property that is checked asynchronously. */
export async function forAllAsync<Values extends unknown[]>(
  arbitraries: [...Arbitraries<Values>],
  options: Options,
  property: (...values: Values) => Promise<unknown>,
): Promise<void> {
  const values = fc.tuple(...arbitraries) as unknown as fc.Arbitrary<Values>
  await fc.assert(
    fc.asyncProperty(values, (each) => property(...each) as Promise<boolean>),
    options,
  )
}
