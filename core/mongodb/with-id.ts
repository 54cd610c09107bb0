/** Returns a document under the name that its id has outside of the database. */
export const withId = <D extends { _id: string }>({ _id, ...rest }: D) => ({ ...rest, id: _id })
