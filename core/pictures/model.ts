/** Owners of pictures. An owner has one present picture. */
export const faceOf = (operator: string): string => `operator ${operator}`
export const logoOf = (siteKey: string): string => `installation ${siteKey}`
