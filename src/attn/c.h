/**
 * The C interface of attn, in the shared library libattn_c, for C and other languages. Names, numbers and errors are those of the C++ interface
 * (attn/attn.hpp), which documents each function in full.
 *
 * - If a function can fail, it returns an attn_status. Its last argument `error` receives an attn_error, or is NULL. After an error no other
 *   output has been written.
 * - You own each returned object and free it with the function of its type; freeing NULL does nothing. You may free arguments as soon as the
 *   call returns.
 * - Strings are UTF-8 with a terminating 0; an attn_text has a length instead.
 * - Call attn_..._options_init(&options) to fill an options struct with defaults, then change fields. NULL for options means the defaults. From
 *   another language, pass the size of your struct as a second argument; in C and C++ a macro does it. It becomes the field `size`, by which a
 *   later version of the library can tell which fields your program has.
 * - If a thread is cancelled (pthread_cancel) during a call, it ends after the call.
 * - Several threads may call at the same time, unless a call changes an object that another call uses (its parameter is not const).
 */
#ifndef ATTN_C_H
#define ATTN_C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With a fixed underlying type C++ may check, and refuse, any number that a caller passes as an enum. */
#ifdef __cplusplus
#define ATTN_INT : int
extern "C" {
#else
#define ATTN_INT
#endif

#if defined(__GNUC__)
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

/* ---- errors ----
 *
 *   attn_error* error = NULL;
 *   if (attn_set_num_threads(5000, &error) != ATTN_OK) {
 *     fprintf(stderr, "%s: %s\n", attn_status_name(attn_error_code(error)), attn_error_message(error));
 *     attn_error_free(error);
 *   }
 */

typedef enum attn_status ATTN_INT {
  ATTN_OK = 0,
  ATTN_ERROR_ARGUMENT = 1,     /**< an argument is missing or of the wrong kind */
  ATTN_ERROR_SHAPE = 2,        /**< ranks, widths, lengths or batches disagree */
  ATTN_ERROR_MASK = 3,         /**< a mask has wrong dims or values */
  ATTN_ERROR_CONFIG = 4,       /**< options are out of range or exclude each other */
  ATTN_ERROR_OUT_OF_RANGE = 5, /**< an index, id or length is outside its range */
  ATTN_ERROR_FORMAT = 6,       /**< a file is missing or breaks the rules of its format */
  ATTN_ERROR_MISMATCH = 7,     /**< a state dictionary has missing, unexpected or mis-shaped names */
  ATTN_ERROR_UNSUPPORTED = 8,  /**< the input is valid, but attn does not support it */
  ATTN_ERROR_MEMORY = 9,       /**< not enough memory */
  ATTN_ERROR_BUSY = 10,        /**< a call from inside another call of the same object */
  ATTN_ERROR_INTERNAL = 11     /**< any other error, for example of the system */
} attn_status;

typedef struct attn_error attn_error;

/** Returns the status that the failed call returned; ATTN_OK for NULL. */
ATTN_API attn_status attn_error_code(const attn_error* error);
/** Returns the name of a status, for example "SHAPE"; NULL for other numbers. */
ATTN_API const char* attn_status_name(attn_status status);
/** Returns "op: argument is X, expected Y", followed by a remedy if there is one. */
ATTN_API const char* attn_error_message(const attn_error* error);
/** Returns the facts of the message (op, argument, expected, got, help, ...) as a JSON object. */
ATTN_API const char* attn_error_detail(const attn_error* error);
/** Frees an error. */
ATTN_API void attn_error_free(attn_error* error);

/* ---- process ----
 *
 *   attn_set_num_threads(0, NULL);
 *   printf("attn %s, %u threads\n", attn_version(), attn_num_threads());
 */

/** Returns the version, for example "0.1.0". */
ATTN_API const char* attn_version(void);
/** Returns the instruction set in use, for example "avx2_fma". CONFIG if the environment variable ATTN_MAX_ARCH names none. */
ATTN_API attn_status attn_arch(const char** name, attn_error** error);
/** Sets the number of threads that all calls share, including the caller; default 1, 0 for one per core. Results keep the same bits. */
ATTN_API attn_status attn_set_num_threads(unsigned count, attn_error** error);
/** Returns the number of threads that all calls share. */
ATTN_API unsigned attn_num_threads(void);
/** Limits the bytes that one call may allocate; beyond the limit it fails with MEMORY. */
ATTN_API void attn_set_memory_limit(uint64_t bytes);

/* ---- tensors ----
 *
 *   attn_tensor output;
 *   if (attn_tensors_get(results, "output", &output)) printf("%f\n", ((const float*)output.data)[0]);
 *   attn_tensors_free(results);
 */

/** Your numbers: element (i,j,..) is data[i * strides[0] + j * strides[1] + ..]. strides may be NULL for row-major numbers without gaps. */
typedef struct attn_view {
  const float* data;
  size_t rank;
  const int64_t* dims;
  const int64_t* strides;
} attn_view;

typedef enum attn_dtype ATTN_INT { ATTN_FLOAT32 = 0, ATTN_INT32 = 1, ATTN_INT64 = 2, ATTN_UINT8 = 3 } attn_dtype;

/** Row-major numbers, valid as long as their attn_tensors. */
typedef struct attn_tensor {
  attn_dtype dtype;
  const void* data;
  size_t rank;
  const int64_t* dims;
} attn_tensor;

typedef struct attn_text {
  const char* data;
  size_t size; /**< bytes */
} attn_text;

/** Tensors by name: results, and parameters under torch's names. */
typedef struct attn_tensors attn_tensors;

/** Creates an empty set of tensors, for attn_tensors_set(). */
ATTN_API attn_status attn_tensors_new(attn_tensors** tensors, attn_error** error);
/** Frees a set of tensors with its numbers, names and texts. */
ATTN_API void attn_tensors_free(attn_tensors* tensors);
/** Returns the number of tensors, without texts; 0 for NULL. */
ATTN_API size_t attn_tensors_count(const attn_tensors* tensors);
/** Returns the name at an index, sorted by bytes; NULL past the last. */
ATTN_API const char* attn_tensors_name(const attn_tensors* tensors, size_t index);
/** Finds a tensor by name and returns whether it exists. `tensor` may be NULL. */
ATTN_API bool attn_tensors_get(const attn_tensors* tensors, const char* name, attn_tensor* tensor);
/** Stores a copy under a name, and replaces the tensor that has it. */
ATTN_API attn_status attn_tensors_set(attn_tensors* tensors, const char* name, const attn_view* view, attn_error** error);

/** Reads text `index` of a result's texts of this name; it is valid as long as `tensors` and ends with 0. Returns false past the last. */
ATTN_API bool attn_tensors_text(const attn_tensors* tensors, const char* name, size_t index, attn_text* text);

/** Reads the tensors of a safetensors file as float32. */
ATTN_API attn_status attn_read_safetensors(const char* path, attn_tensors** tensors, attn_error** error);

typedef enum attn_mask_kind ATTN_INT {
  ATTN_MASK_ATTEND = 0,  /**< not 0: may attend (torch's scaled_dot_product_attention) */
  ATTN_MASK_BLOCK = 1,   /**< not 0: blocked (torch's nn.MultiheadAttention) */
  ATTN_MASK_ADDITIVE = 2 /**< added to the scaled scores; -infinity blocks */
} attn_mask_kind;

/** Row-major; dims (S), (L,S), (B,L,S) or (B,H,L,S), any of B, H, L may be 1; a key padding mask has (B,S). */
typedef struct attn_mask {
  attn_mask_kind kind;
  const uint8_t* flags; /**< a byte per key, for attend and block; or */
  const float* values;  /**< a number per key, for any kind */
  size_t rank;
  const int64_t* dims;
} attn_mask;

/* ---- attention ----
 *
 *   const int64_t dims[] = {3, 8};
 *   const attn_view x = {numbers, 2, dims, NULL};
 *   attn_attention_options options;
 *   attn_attention_options_init(&options);
 *   options.is_causal = options.need_weights = true;
 *   attn_tensors* results;
 *   attn_status status = attn_scaled_dot_product_attention(&x, &x, &x, &options, &results, NULL);
 */

typedef enum attn_fully_masked ATTN_INT { ATTN_FULLY_MASKED_ZERO = 0, ATTN_FULLY_MASKED_NAN = 1, ATTN_FULLY_MASKED_UNIFORM = 2 } attn_fully_masked;

/** attn::AttentionOptions. */
typedef struct attn_attention_options {
  size_t size; /**< of this struct in bytes, set by attn_attention_options_init() */
  const attn_mask* mask;
  const attn_mask* key_padding_mask;
  bool is_causal;
  float scale;   /**< NaN: 1/sqrt(D) */
  float dropout; /**< probability; NaN: the layer's, none for a function */
  uint64_t seed; /**< for dropout */
  bool need_weights;
  bool average_weights;
  bool enable_gqa;
  attn_fully_masked fully_masked;
  float softcap;                     /**< NaN: the layer's, none for a function */
  int64_t window_left, window_right; /**< keys before and after the query; below 0: no limit */
  const char* const* trace;          /**< names of intermediate results */
  size_t trace_count;
} attn_attention_options;

/** Fills the options with defaults: no masks, window, trace or weights; scale, dropout and softcap of the layer. */
ATTN_API void attn_attention_options_init(attn_attention_options* options, size_t size);

/** Computes softmax(query keyᵀ · scale) value; query (..,L,D), key (..,S,D), value (..,S,Dv) of rank 2, 3 or 4.
 * Results: "output" (..,L,Dv), on request "weights" (..,L,S) and "trace.NAME". */
ATTN_API attn_status attn_scaled_dot_product_attention(const attn_view* query, const attn_view* key, const attn_view* value,
                                                       const attn_attention_options* options, attn_tensors** results, attn_error** error);

typedef struct attn_multi_head_attention attn_multi_head_attention;

/** attn::MultiHeadAttentionOptions; 0 means the default of a width. */
typedef struct attn_multi_head_attention_options {
  size_t size; /**< of this struct in bytes, set by attn_multi_head_attention_options_init() */
  int64_t embed_dim, num_heads;
  int64_t num_key_value_heads, kdim, vdim, head_dim, value_head_dim;
  bool bias, add_bias_kv, add_zero_attn, out_proj;
  float scale; /**< NaN: 1/sqrt(D) */
} attn_multi_head_attention_options;

/** Fills the options with defaults: bias and out_proj, nothing else. Set embed_dim and num_heads. */
ATTN_API void attn_multi_head_attention_options_init(attn_multi_head_attention_options* options, size_t size);
/** Creates a layer with the initial weights of torch, from seed 0. CONFIG if widths or numbers of heads do not fit together. */
ATTN_API attn_status attn_multi_head_attention_new(const attn_multi_head_attention_options* options, attn_multi_head_attention** layer,
                                                   attn_error** error);
/** Frees a layer. */
ATTN_API void attn_multi_head_attention_free(attn_multi_head_attention* layer);
/** Copies parameters into the layer. strict: the names must be exactly those of the layer. MISMATCH with all names and shapes that do not fit; after
 * an error nothing has changed. */
ATTN_API attn_status attn_multi_head_attention_load_state_dict(attn_multi_head_attention* layer, const attn_tensors* state, bool strict,
                                                               attn_error** error);
/** Returns a copy of the parameters under torch's names. */
ATTN_API attn_status attn_multi_head_attention_state_dict(const attn_multi_head_attention* layer, attn_tensors** state, attn_error** error);
/** Computes multi-head attention; query (B,L,E) or (L,E). If key and value are NULL, they are the query.
 * Results: those of attn_scaled_dot_product_attention. */
ATTN_API attn_status attn_multi_head_attention_forward(const attn_multi_head_attention* layer, const attn_view* query, const attn_view* key,
                                                       const attn_view* value, const attn_attention_options* options, attn_tensors** results,
                                                       attn_error** error);

typedef struct attn_transformer_encoder attn_transformer_encoder;

/** attn::TransformerEncoderLayerOptions. */
typedef struct attn_transformer_encoder_layer_options {
  size_t size; /**< of this struct in bytes, set by attn_transformer_encoder_layer_options_init() */
  int64_t d_model, nhead, dim_feedforward;
  const char* activation; /**< "relu", "gelu", ... */
  float layer_norm_eps;
  bool norm_first, bias, gated;
  int64_t num_key_value_heads; /**< 0: nhead */
} attn_transformer_encoder_layer_options;

/** attn::TransformerEncoderOptions. */
typedef struct attn_transformer_encoder_options {
  size_t size;                                         /**< of this struct in bytes, set by attn_transformer_encoder_options_init() */
  const attn_transformer_encoder_layer_options* layer; /**< of every layer */
  int64_t num_layers;
  bool final_norm;
} attn_transformer_encoder_options;

/** attn::EncoderForwardOptions. */
typedef struct attn_encoder_forward_options {
  size_t size; /**< of this struct in bytes, set by attn_encoder_forward_options_init() */
  const attn_mask* mask;
  const attn_mask* key_padding_mask;
  bool is_causal;
  bool output_attentions;
  bool output_hidden_states;
  const char* const* trace; /**< names of intermediate results, for every layer */
  size_t trace_count;
} attn_encoder_forward_options;

/** Fills the options with defaults: dim_feedforward 2048, "relu", layer_norm_eps 1e-5, bias. Set d_model and nhead. */
ATTN_API void attn_transformer_encoder_layer_options_init(attn_transformer_encoder_layer_options* options, size_t size);
/** Fills the options with defaults: no final norm. Set layer and num_layers. */
ATTN_API void attn_transformer_encoder_options_init(attn_transformer_encoder_options* options, size_t size);
/** Fills the options with defaults: no masks, and only the output as result. */
ATTN_API void attn_encoder_forward_options_init(attn_encoder_forward_options* options, size_t size);
/** Creates an encoder with the initial weights of torch, from seed 0. CONFIG if widths or numbers of heads or layers do not fit together, ARGUMENT
 * for an unknown activation. */
ATTN_API attn_status attn_transformer_encoder_new(const attn_transformer_encoder_options* options, attn_transformer_encoder** encoder,
                                                  attn_error** error);
/** Frees an encoder. */
ATTN_API void attn_transformer_encoder_free(attn_transformer_encoder* encoder);
/** Copies parameters into the encoder, as attn_multi_head_attention_load_state_dict(). */
ATTN_API attn_status attn_transformer_encoder_load_state_dict(attn_transformer_encoder* encoder, const attn_tensors* state, bool strict,
                                                              attn_error** error);
/** Returns a copy of the parameters under torch's names. */
ATTN_API attn_status attn_transformer_encoder_state_dict(const attn_transformer_encoder* encoder, attn_tensors** state, attn_error** error);
/** Computes all layers; x (B,L,E) or (L,E).
 * Results: "output", on request "attentions.LAYER", "hidden_states.LAYER" and "trace.LAYER.NAME". */
ATTN_API attn_status attn_transformer_encoder_forward(const attn_transformer_encoder* encoder, const attn_view* x,
                                                      const attn_encoder_forward_options* options, attn_tensors** results, attn_error** error);

/* ---- text models ----
 *
 *   attn_text_model* model;
 *   if (attn_text_model_load("models/sentiment", ATTN_WEIGHTS_AS_STORED, &model, &error) == ATTN_OK) {
 *     const attn_text text = {"A warm film.", 12};
 *     attn_classify_options options;
 *     attn_classify_options_init(&options);
 *     options.top_k = 1;
 *     attn_tensors* results;
 *     attn_tensor labels;
 *     if (attn_text_model_classify(model, &text, NULL, 1, &options, &results, &error) == ATTN_OK) {
 *       attn_tensors_get(results, "labels", &labels);
 *       puts(attn_text_model_label(model, (size_t)((const int32_t*)labels.data)[0]));
 *       attn_tensors_free(results);
 *     }
 *     attn_text_model_free(model);
 *   }
 */

typedef struct attn_text_model attn_text_model;

typedef enum attn_weights ATTN_INT { ATTN_WEIGHTS_AS_STORED = 0, ATTN_WEIGHTS_FLOAT32 = 1, ATTN_WEIGHTS_INT8 = 2 } attn_weights;

/** Loads a Hugging Face folder (transformers, sentence-transformers), or a .gguf file of a language model. */
ATTN_API attn_status attn_text_model_load(const char* folder, attn_weights weights, attn_text_model** model, attn_error** error);
/** Frees a model. */
ATTN_API void attn_text_model_free(attn_text_model* model);
/** Returns the number of tokens that texts are truncated to by default. */
ATTN_API int64_t attn_text_model_max_length(const attn_text_model* model);
/** Returns the task of the head: "text-classification", "token-classification", "fill-mask", "question-answering", "multiple-choice",
 * "text-generation", or "embedding" without a head. */
ATTN_API const char* attn_text_model_task(const attn_text_model* model);
/** Returns the label at an index; NULL past the last. */
ATTN_API const char* attn_text_model_label(const attn_text_model* model, size_t index);
/** Returns a note about parts of the files that the model does not use, for example tensors of another head; NULL past the last. */
ATTN_API const char* attn_text_model_note(const attn_text_model* model, size_t index);
/** Returns the token that fill_mask predicts a word for, for example "[MASK]"; free it with attn_string_free. NULL if there is none. */
ATTN_API attn_status attn_text_model_mask_token(const attn_text_model* model, char** token, attn_error** error);

typedef struct attn_embed_options {
  size_t size;                 /**< of this struct in bytes, set by attn_embed_options_init() */
  int64_t max_length;          /**< 0: the model's */
  bool truncation;             /**< false: an overlong text is OUT_OF_RANGE */
  const char* pooling;         /**< "mean", "cls", ...; NULL: the model's */
  int normalize;               /**< 1, 0, or -1: the model's */
  int64_t batch_size;          /**< does not change any bit */
  const char* prompt;          /**< put before each text; NULL: the model's */
  const char* prompt_name;     /**< one of config_sentence_transformers.json; NULL: the model's */
  bool add_special_tokens;     /**< add [CLS] and so on around a text */
  const char* truncation_side; /**< "left" or "right"; NULL: the model's */
} attn_embed_options;

/** Fills the options with defaults: those of the model; overlong texts are truncated. */
ATTN_API void attn_embed_options_init(attn_embed_options* options, size_t size);
/** Computes a vector per text. Results: "embeddings" (N,E). */
ATTN_API attn_status attn_text_model_embed(const attn_text_model* model, const attn_text* texts, size_t count, const attn_embed_options* options,
                                           attn_tensors** results, attn_error** error);

/** attn::ClassifyOptions; fields as in attn_embed_options. */
typedef struct attn_classify_options {
  size_t size; /**< of this struct in bytes, set by attn_classify_options_init() */
  int64_t max_length;
  bool truncation;
  int64_t batch_size;
  int64_t top_k; /**< labels per text; 0: all */
  bool add_special_tokens;
  const char* truncation_side;
} attn_classify_options;

/** Fills the options with defaults: all labels; overlong texts are truncated. */
ATTN_API void attn_classify_options_init(attn_classify_options* options, size_t size);
/** Scores the labels of texts or pairs. `pairs`: the second text of each pair, or NULL.
 * Results: "scores" (N,C) by descending score, "labels" (N,C) int32, the index of each score's label. */
ATTN_API attn_status attn_text_model_classify(const attn_text_model* model, const attn_text* texts, const attn_text* pairs, size_t count,
                                              const attn_classify_options* options, attn_tensors** results, attn_error** error);

/** attn::ClassifyTokensOptions; fields as in attn_embed_options. */
typedef struct attn_classify_tokens_options {
  size_t size; /**< of this struct in bytes, set by attn_classify_tokens_options_init() */
  int64_t max_length;
  bool truncation;
  const char* aggregation; /**< "none", "simple", "first", "average" or "max" */
  int64_t stride;          /**< tokens that windows of a long text share; below 0: the text is truncated */
  const char* const* ignore_labels;
  size_t ignore_label_count;
  int64_t batch_size;
  bool add_special_tokens;
  const char* truncation_side;
} attn_classify_tokens_options;

/** Fills the options with defaults: "simple" aggregation, label "O" ignored, overlong texts truncated. */
ATTN_API void attn_classify_tokens_options_init(attn_classify_tokens_options* options, size_t size);
/** Finds the M entities of the texts. Results: "rows" (M) int64, the index of the text, "scores" (M), "offsets" (M,2) int64, bytes of the text;
 * texts "labels". */
ATTN_API attn_status attn_text_model_classify_tokens(const attn_text_model* model, const attn_text* texts, size_t count,
                                                     const attn_classify_tokens_options* options, attn_tensors** results, attn_error** error);

/** attn::FillMaskOptions. */
typedef struct attn_fill_mask_options {
  size_t size; /**< of this struct in bytes, set by attn_fill_mask_options_init() */
  int64_t top_k;
  const attn_text* targets; /**< score only these tokens */
  size_t target_count;
  int64_t batch_size;
} attn_fill_mask_options;

/** Fills the options with defaults: top_k 5, among all tokens. */
ATTN_API void attn_fill_mask_options_init(attn_fill_mask_options* options, size_t size);
/** Predicts the K most likely tokens for each of M masks. Results: "ids" (M,K) int64, "scores" (M,K); texts in the same order: "tokens", and
 * "texts", the text with the token instead of the mask. */
ATTN_API attn_status attn_text_model_fill_mask(const attn_text_model* model, const attn_text* text, const attn_fill_mask_options* options,
                                               attn_tensors** results, attn_error** error);

/** attn::AnswerOptions. */
typedef struct attn_answer_options {
  size_t size; /**< of this struct in bytes, set by attn_answer_options_init() */
  int64_t top_k;
  int64_t max_answer_length; /**< in tokens */
  int64_t stride;            /**< tokens that windows of a long context share; below 0: the default */
  bool allow_empty;          /**< "no answer" is an answer, an empty text */
  int64_t max_length;        /**< tokens of a window, question included; 0: the default */
  int64_t batch_size;
} attn_answer_options;

/** Fills the options with defaults: top_k 1, answers of at most 15 tokens and never empty. */
ATTN_API void attn_answer_options_init(attn_answer_options* options, size_t size);
/** Finds the K most likely answers, at most top_k. Results: "scores" (K), "offsets" (K,2) int64, bytes of the context; texts "texts". */
ATTN_API attn_status attn_text_model_answer(const attn_text_model* model, const attn_text* question, const attn_text* context,
                                            const attn_answer_options* options, attn_tensors** results, attn_error** error);

/** attn::RankOptions; fields as in attn_embed_options. */
typedef struct attn_rank_options {
  size_t size; /**< of this struct in bytes, set by attn_rank_options_init() */
  int64_t max_length;
  bool truncation;
  int64_t top_k; /**< 0: all */
  int64_t batch_size;
  const char* prompt; /**< put before the query */
  const char* prompt_name;
  bool add_special_tokens;
  const char* truncation_side;
} attn_rank_options;

/** Fills the options with defaults: all documents; overlong texts are truncated. */
ATTN_API void attn_rank_options_init(attn_rank_options* options, size_t size);
/** Sorts documents by descending relevance. Results: "indices" (K) int64 and "scores" (K). */
ATTN_API attn_status attn_text_model_rank(const attn_text_model* model, const attn_text* query, const attn_text* documents, size_t count,
                                          const attn_rank_options* options, attn_tensors** results, attn_error** error);

/** A token that attn_text_model_generate() has added; valid until on_token returns. */
typedef struct attn_generated_token {
  int64_t id;
  attn_text text;    /**< what the token adds to the text; empty while the bytes of a character are incomplete */
  float probability; /**< of the model, before any option changes it */
} attn_generated_token;

/** attn::GenerateOptions and attn::SamplingOptions. */
typedef struct attn_generate_options {
  size_t size; /**< of this struct in bytes, set by attn_generate_options_init() */
  int64_t max_new_tokens;
  bool do_sample; /**< false: the likeliest token; temperature, top_k, top_p and min_p then do not matter */
  double temperature;
  int64_t top_k; /**< 0: all */
  double top_p;
  double min_p;
  double repetition_penalty;
  uint64_t seed;
  const attn_text* stop; /**< the new text ends before the first of these */
  size_t stop_count;
  bool add_special_tokens; /**< as in attn_embed_options, for the prompt */
  /** Called for each token with user_data; false ends the text. NULL: not called. It must not throw or jump out. */
  bool (*on_token)(const attn_generated_token* token, void* user_data);
  void* user_data;
} attn_generate_options;

/** Fills the options with defaults: 64 new tokens, each the likeliest. */
ATTN_API void attn_generate_options_init(attn_generate_options* options, size_t size);
/** Continues a text with a language model. Results: "ids" (N) int64; texts "text", the new part, "tokens" (N), as in the vocabulary, and
 * "finish_reason": "length", "eos", "stop" or "aborted". */
ATTN_API attn_status attn_text_model_generate(const attn_text_model* model, const attn_text* prompt, const attn_generate_options* options,
                                              attn_tensors** results, attn_error** error);
/** Predicts the K likeliest tokens after a text, at most top_k. Results: "ids" (K) int64, "logits" (K), "probabilities" (K); texts "tokens", as in
 * the vocabulary, and "texts". */
ATTN_API attn_status attn_text_model_next_token(const attn_text_model* model, const attn_text* text, int64_t top_k, attn_tensors** results,
                                                attn_error** error);
/** Scores each token of a text by the tokens before it. Results: "ids" (L) int64, "log_probabilities" (L) and "entropies" (L) in nats, "ranks" (L)
 * int64, 1 for the likeliest token, "perplexity" (1); texts "tokens". The first token has NaN, NaN and 0, because nothing is before it. */
ATTN_API attn_status attn_text_model_score_tokens(const attn_text_model* model, const attn_text* text, attn_tensors** results, attn_error** error);

/** Converts texts or pairs to token ids. max_length 0: the model's. Results: "input_ids", "token_type_ids" (B,L) int32, "attention_mask" (B,L)
 * uint8, "offsets" (B,L,2) int64, bytes of the text, or -1 for padding and special tokens. */
ATTN_API attn_status attn_text_model_tokenize(const attn_text_model* model, const attn_text* texts, const attn_text* pairs, size_t count,
                                              int64_t max_length, bool truncation, attn_tensors** results, attn_error** error);
/** Returns the token of an id; free it with attn_string_free. OUT_OF_RANGE if the vocabulary does not have the id. */
ATTN_API attn_status attn_text_model_id_to_token(const attn_text_model* model, int64_t id, char** token, attn_error** error);
/** Converts token ids to text; free it with attn_string_free. Unknown ids are left out. */
ATTN_API attn_status attn_text_model_decode(const attn_text_model* model, const int32_t* ids, size_t count, bool skip_special_tokens, char** text,
                                            attn_error** error);
/** Frees a string that a function returned as char*. */
ATTN_API void attn_string_free(char* string);

/** attn::TextForwardOptions. */
typedef struct attn_text_forward_options {
  size_t size; /**< of this struct in bytes, set by attn_text_forward_options_init() */
  bool output_attentions;
  bool output_hidden_states;
  bool is_causal;
  const attn_mask* mask;
  const attn_view* head_mask; /**< (layers,H); 0 switches a head off */
  const char* const* trace;   /**< names of intermediate results, for every layer */
  size_t trace_count;
} attn_text_forward_options;

/** Fills the options with defaults: no masks, and only the results that are not on request. */
ATTN_API void attn_text_forward_options_init(attn_text_forward_options* options, size_t size);
/** Computes the model on token ids (B,L); token_type_ids and attention_mask may be NULL. Results: "last_hidden_state", with a head "logits", on
 * request "attentions.LAYER", "hidden_states.LAYER" and "trace.LAYER.NAME". */
ATTN_API attn_status attn_text_model_forward(const attn_text_model* model, const int32_t* input_ids, const int32_t* token_type_ids,
                                             const uint8_t* attention_mask, int64_t batch, int64_t length, const attn_text_forward_options* options,
                                             attn_tensors** results, attn_error** error);

/** Scores each token by its contribution to an answer. method: "integrated_gradients", "leave_one_out", ...; target: a label, or NULL for the
 * most likely one. Results: "scores" (L), "offsets" (L,2) int64, for integrated_gradients "delta" (1). */
ATTN_API attn_status attn_text_model_attribute(const attn_text_model* model, const attn_text* text, const char* method, const char* target,
                                               attn_tensors** results, attn_error** error);

/** Returns a copy of the weights under the names of the checkpoint, int8 weights as float32. */
ATTN_API attn_status attn_text_model_state_dict(const attn_text_model* model, attn_tensors** state, attn_error** error);
/** Copies weights into the model, as attn_multi_head_attention_load_state_dict(). FORMAT if a weight that becomes int8 is NaN or infinite. */
ATTN_API attn_status attn_text_model_load_state_dict(attn_text_model* model, const attn_tensors* state, bool strict, attn_error** error);
typedef enum attn_file_weights ATTN_INT { ATTN_FILE_AS_IS = 0, ATTN_FILE_FLOAT32 = 1, ATTN_FILE_FLOAT16 = 2, ATTN_FILE_INT8 = 3 } attn_file_weights;
/** Writes the model to a folder in the format of transformers; all files are replaced or none. ARGUMENT if the folder cannot be written,
 * OUT_OF_RANGE if a weight is too large for float16, FORMAT if NaN or infinity would become int8. */
ATTN_API attn_status attn_text_model_save_pretrained(const attn_text_model* model, const char* folder, attn_file_weights weights, attn_error** error);

/** attn::lens::LogitLensOptions. */
typedef struct attn_logit_lens_options {
  size_t size;           /**< of this struct in bytes, set by attn_logit_lens_options_init() */
  const int64_t* layers; /**< layers whose inputs become predictions, from 0; the number of layers: the output. NULL: all */
  size_t layer_count;
  const int64_t* positions; /**< NULL: all */
  size_t position_count;
  int64_t top_k; /**< tokens per prediction */
} attn_logit_lens_options;

/** Fills the options with defaults: 5 tokens for each layer and position. */
ATTN_API void attn_logit_lens_options_init(attn_logit_lens_options* options, size_t size);
/** Returns what each layer would predict: attn::lens::logit_lens(). Results: "layers" (N) and "positions" (P) int64, "ids" (N,P,K) int64, "logits"
 * and "probabilities" (N,P,K), the likeliest first; texts "tokens" (L), and "predictions" (N·P·K), as in the vocabulary. */
ATTN_API attn_status attn_text_model_logit_lens(const attn_text_model* model, const attn_text* text, const attn_logit_lens_options* options,
                                                attn_tensors** results, attn_error** error);

/** attn::lens::LogitAttributionOptions. */
typedef struct attn_logit_attribution_options {
  size_t size;               /**< of this struct in bytes, set by attn_logit_attribution_options_init() */
  const attn_text* contrast; /**< a token whose logit is subtracted; NULL: none */
  int64_t position;          /**< of the prediction; below 0: the last token */
} attn_logit_attribution_options;

/** Fills the options with defaults: no contrast, the last token. */
ATTN_API void attn_logit_attribution_options_init(attn_logit_attribution_options* options, size_t size);
/** Splits the logit of a token into parts that add up to it: attn::lens::logit_attribution(). `target`: a token as in the vocabulary, or a text that
 * is one token. Results: "position" (1) int64, "value" (1), "embedding" (1), "heads" (layers,H), "mlps" (layers), "biases" (1); texts "tokens" (L).
 */
ATTN_API attn_status attn_text_model_logit_attribution(const attn_text_model* model, const attn_text* text, const attn_text* target,
                                                       const attn_logit_attribution_options* options, attn_tensors** results, attn_error** error);

/** attn::lens::PatchOptions. */
typedef struct attn_patch_options {
  size_t size;               /**< of this struct in bytes, set by attn_patch_options_init() */
  const attn_text* contrast; /**< a token whose logit is subtracted; NULL: none */
  const char* site;          /**< "residual", "head", "attention" or "mlp" */
  int64_t position;          /**< of the answer's logit; below 0: the last token */
  const int64_t* positions;  /**< positions to patch, not for heads; NULL: all */
  size_t position_count;
} attn_patch_options;

/** Fills the options with defaults: the residual at all positions, no contrast, the last token. */
ATTN_API void attn_patch_options_init(attn_patch_options* options, size_t size);
/** Runs the corrupted text with activations of the clean text in place, one at a time: attn::lens::patch_activations(). `answer`: a token that the
 * clean text suggests. Results: "recovered" (layers,P), for heads (layers,H): 0 as in the corrupted text, 1 as in the clean text; "positions" (P)
 * int64, "clean" and "corrupted" (1), the logits of the answer; texts "clean_tokens" and "corrupted_tokens" (L). */
ATTN_API attn_status attn_text_model_patch_activations(const attn_text_model* model, const attn_text* clean, const attn_text* corrupted,
                                                       const attn_text* answer, const attn_patch_options* options, attn_tensors** results,
                                                       attn_error** error);
/** Estimates the results of attn_text_model_patch_activations() by one backward: attn::lens::attribution_patching(). */
ATTN_API attn_status attn_text_model_attribution_patching(const attn_text_model* model, const attn_text* clean, const attn_text* corrupted,
                                                          const attn_text* answer, const attn_patch_options* options, attn_tensors** results,
                                                          attn_error** error);

/** attn::lens::HeadScoresOptions. */
typedef struct attn_head_scores_options {
  size_t size;              /**< of this struct in bytes, set by attn_head_scores_options_init() */
  const char* const* kinds; /**< of "previous_token", "duplicate_token", "induction", "first_token"; NULL: all */
  size_t kind_count;
  const attn_text* text; /**< NULL: random tokens, twice */
  uint32_t seed;         /**< of the random tokens */
} attn_head_scores_options;

/** Fills the options with defaults: all kinds, on random tokens. */
ATTN_API void attn_head_scores_options_init(attn_head_scores_options* options, size_t size);
/** Scores each head by the attention that it gives to the keys of a kind: attn::lens::head_scores(). Results: "scores.KIND" (layers,H), from 0 to 1,
 * "ids" (L) int64; texts "tokens" (L). */
ATTN_API attn_status attn_text_model_head_scores(const attn_text_model* model, const attn_head_scores_options* options, attn_tensors** results,
                                                 attn_error** error);

/* The size of each struct as the program was compiled. */
#define attn_attention_options_init(options) attn_attention_options_init(options, sizeof *(options))
#define attn_multi_head_attention_options_init(options) attn_multi_head_attention_options_init(options, sizeof *(options))
#define attn_transformer_encoder_layer_options_init(options) attn_transformer_encoder_layer_options_init(options, sizeof *(options))
#define attn_transformer_encoder_options_init(options) attn_transformer_encoder_options_init(options, sizeof *(options))
#define attn_encoder_forward_options_init(options) attn_encoder_forward_options_init(options, sizeof *(options))
#define attn_embed_options_init(options) attn_embed_options_init(options, sizeof *(options))
#define attn_classify_options_init(options) attn_classify_options_init(options, sizeof *(options))
#define attn_classify_tokens_options_init(options) attn_classify_tokens_options_init(options, sizeof *(options))
#define attn_fill_mask_options_init(options) attn_fill_mask_options_init(options, sizeof *(options))
#define attn_answer_options_init(options) attn_answer_options_init(options, sizeof *(options))
#define attn_rank_options_init(options) attn_rank_options_init(options, sizeof *(options))
#define attn_generate_options_init(options) attn_generate_options_init(options, sizeof *(options))
#define attn_text_forward_options_init(options) attn_text_forward_options_init(options, sizeof *(options))
#define attn_logit_lens_options_init(options) attn_logit_lens_options_init(options, sizeof *(options))
#define attn_logit_attribution_options_init(options) attn_logit_attribution_options_init(options, sizeof *(options))
#define attn_patch_options_init(options) attn_patch_options_init(options, sizeof *(options))
#define attn_head_scores_options_init(options) attn_head_scores_options_init(options, sizeof *(options))

#ifdef __cplusplus
}
#endif

#endif
