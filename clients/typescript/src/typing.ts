/** The types of requests and responses, from the OpenAPI document. */
import type { paths } from "./schema.ts";

/** The methods of a path. */
export type MethodOf<Path extends keyof paths> = {
  [Method in keyof paths[Path]]: paths[Path][Method] extends { responses: unknown } ? Method : never;
}[keyof paths[Path]] &
  string;

type Content<Part> = Part extends { content: { "application/json": infer Json } } ? Json : never;

/** The success response of a path. */
export type Answer<Path extends keyof paths, Method extends MethodOf<Path>> = paths[Path][Method] extends {
  responses: { 200: infer Response };
}
  ? Content<Response>
  : never;

/** The body of a path. */
export type Body<Path extends keyof paths, Method extends MethodOf<Path>> = paths[Path][Method] extends {
  requestBody?: infer Request;
}
  ? Content<NonNullable<Request>>
  : undefined;

/** The query of a path. */
export type QueryOf<Path extends keyof paths, Method extends MethodOf<Path>> = paths[Path][Method] extends {
  parameters: { query?: infer Query };
}
  ? Query
  : undefined;
