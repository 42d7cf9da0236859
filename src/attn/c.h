/**
 * attn for other languages: C, one shared library (libattn_c). Numbers, names and errors are those of the C++ interface (attn/attn.hpp), whose
 * comments say what each function computes.
 *
 * - A function that can fail returns an attn_status and takes `error` last: where to put an attn_error, or NULL. Nothing has been written to
 *   its other outputs then.
 * - What a function gives is the caller's, who frees it by the function of that type. Freeing NULL does nothing. What has been passed in
 *   may be freed as soon as the call returns.
 * - Texts are UTF-8 and end with 0, but for attn_text, which has a length.
 * - Options are filled with the defaults by their attn_..._init(), and then changed. NULL for options: the defaults.
 * - A thread that is cancelled (pthread_cancel) during a call ends after it.
 * - Calls from several threads at once are safe, but for those that change an object that another one is using (its parameter is not const).
 */
#ifndef ATTN_C_H
#define ATTN_C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In C++ an enum has a type, so that any number that a caller passes can be looked at and refused. */
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

/* ---- errors ---- */

typedef enum attn_status ATTN_INT {
  ATTN_OK = 0,
  ATTN_ERROR_ARGUMENT = 1,     /**< an argument is missing or not of its kind */
  ATTN_ERROR_SHAPE = 2,        /**< ranks, widths, lengths or batches disagree */
  ATTN_ERROR_MASK = 3,         /**< a mask has wrong dims or values */
  ATTN_ERROR_CONFIG = 4,       /**< options that cannot work together or are out of their range */
  ATTN_ERROR_OUT_OF_RANGE = 5, /**< an index, id or name is outside its table */
  ATTN_ERROR_FORMAT = 6,       /**< bytes are not what they should be */
  ATTN_ERROR_MISMATCH = 7,     /**< a state dictionary has missing, extra or mis-shaped names */
  ATTN_ERROR_UNSUPPORTED = 8,  /**< valid, but not something attn does */
  ATTN_ERROR_MEMORY = 9,       /**< not enough memory */
  ATTN_ERROR_BUSY = 10,        /**< called from inside what has to end first */
  ATTN_ERROR_INTERNAL = 11     /**< anything else, such as a system without threads */
} attn_status;

typedef struct attn_error attn_error;

ATTN_API attn_status attn_error_code(const attn_error* error);
/** "SHAPE" and so on; NULL for a number that is no status. */
ATTN_API const char* attn_status_name(attn_status status);
ATTN_API const char* attn_error_message(const attn_error* error);
/** The facts of the message (op, argument, expected, got, ...) as a JSON object. */
ATTN_API const char* attn_error_detail(const attn_error* error);
ATTN_API void attn_error_free(attn_error* error);

/* ---- the process ---- */

/** "0.1.0". */
ATTN_API const char* attn_version(void);
/** The kernels in use, "avx2_fma" for example. CONFIG where ATTN_MAX_ARCH in the environment names none. */
ATTN_API attn_status attn_arch(const char** name, attn_error** error);
/** Threads that all calls share, the calling one included; 0: one per core; at first 1. It changes no bit of a result. */
ATTN_API attn_status attn_set_num_threads(unsigned count, attn_error** error);
ATTN_API unsigned attn_num_threads(void);
/** Bytes that one call may ask for; above that it is MEMORY. */
ATTN_API void attn_set_memory_limit(uint64_t bytes);

/* ---- tensors ---- */

/** Numbers of the caller's: element (i,j,..) is data[i * strides[0] + j * strides[1] + ..]; strides NULL: row-major, without gaps. */
typedef struct attn_view {
  const float* data;
  size_t rank;
  const int64_t* dims;
  const int64_t* strides;
} attn_view;

typedef enum attn_dtype ATTN_INT { ATTN_FLOAT32 = 0, ATTN_INT32 = 1, ATTN_INT64 = 2, ATTN_UINT8 = 3 } attn_dtype;

/** Row-major numbers, which live as long as the attn_tensors that they are from. */
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

/** Tensors by name: results, and parameters by torch's names. */
typedef struct attn_tensors attn_tensors;

ATTN_API attn_status attn_tensors_new(attn_tensors** tensors, attn_error** error);
ATTN_API void attn_tensors_free(attn_tensors* tensors);
ATTN_API size_t attn_tensors_count(const attn_tensors* tensors);
/** In the order of the names' bytes; NULL past the last. */
ATTN_API const char* attn_tensors_name(const attn_tensors* tensors, size_t index);
/** Whether there is one of that name; NULL for `tensor` only asks. */
ATTN_API bool attn_tensors_get(const attn_tensors* tensors, const char* name, attn_tensor* tensor);
/** Puts a copy there, in the place of one of that name. */
ATTN_API attn_status attn_tensors_set(attn_tensors* tensors, const char* name, const attn_view* view, attn_error** error);

/** Texts that a result has beside its tensors: one of those of that name, which lives as long as `tensors` and ends with 0, too. False past the last.
 */
ATTN_API bool attn_tensors_text(const attn_tensors* tensors, const char* name, size_t index, attn_text* text);

/** Tensors of a safetensors file as float32. */
ATTN_API attn_status attn_read_safetensors(const char* path, attn_tensors** tensors, attn_error** error);

typedef enum attn_mask_kind ATTN_INT {
  ATTN_MASK_ATTEND = 0,  /**< not 0: may attend (torch's scaled_dot_product_attention) */
  ATTN_MASK_BLOCK = 1,   /**< not 0: blocked (torch's nn.MultiheadAttention) */
  ATTN_MASK_ADDITIVE = 2 /**< added to the scaled scores, -infinity blocks */
} attn_mask_kind;

/** Row-major; dims (S), (L,S), (B,L,S) or (B,H,L,S), any of B, H, L may be 1; of padding (B,S). */
typedef struct attn_mask {
  attn_mask_kind kind;
  const uint8_t* flags; /**< of attend and block, a byte each; or */
  const float* values;  /**< of additive, and of the others as numbers */
  size_t rank;
  const int64_t* dims;
} attn_mask;

/* ---- attention ---- */

typedef enum attn_fully_masked ATTN_INT { ATTN_FULLY_MASKED_ZERO = 0, ATTN_FULLY_MASKED_NAN = 1, ATTN_FULLY_MASKED_UNIFORM = 2 } attn_fully_masked;

/** As attn::AttentionOptions. */
typedef struct attn_attention_options {
  const attn_mask* mask;
  const attn_mask* key_padding_mask;
  bool is_causal;
  float scale;   /**< NaN: 1/sqrt(D) */
  float dropout; /**< NaN: of a function none, of a layer its own */
  uint64_t seed; /**< of the dropout */
  bool need_weights;
  bool average_weights;
  bool enable_gqa;
  attn_fully_masked fully_masked;
  float softcap;                     /**< NaN: of a function none, of a layer its own */
  int64_t window_left, window_right; /**< below 0: open */
  const char* const* trace;          /**< names of intermediate results */
  size_t trace_count;
} attn_attention_options;

ATTN_API void attn_attention_options_init(attn_attention_options* options);

/** q (..,L,D), k (..,S,D), v (..,S,Dv) of rank 2, 3 or 4 -> "output", where asked for "weights" and "trace.NAME". */
ATTN_API attn_status attn_scaled_dot_product_attention(const attn_view* query, const attn_view* key, const attn_view* value,
                                                       const attn_attention_options* options, attn_tensors** results, attn_error** error);

typedef struct attn_multi_head_attention attn_multi_head_attention;

/** As attn::MultiHeadAttentionOptions; a width of 0 has that one's default. */
typedef struct attn_multi_head_attention_options {
  int64_t embed_dim, num_heads;
  int64_t num_key_value_heads, kdim, vdim, head_dim, value_head_dim;
  bool bias, add_bias_kv, add_zero_attn, out_proj;
  float scale; /**< NaN: 1/sqrt(D) */
} attn_multi_head_attention_options;

ATTN_API void attn_multi_head_attention_options_init(attn_multi_head_attention_options* options);
ATTN_API attn_status attn_multi_head_attention_new(const attn_multi_head_attention_options* options, attn_multi_head_attention** layer,
                                                   attn_error** error);
ATTN_API void attn_multi_head_attention_free(attn_multi_head_attention* layer);
/** strict: all names and no others. Nothing is changed where it fails. */
ATTN_API attn_status attn_multi_head_attention_load_state_dict(attn_multi_head_attention* layer, const attn_tensors* state, bool strict,
                                                               attn_error** error);
ATTN_API attn_status attn_multi_head_attention_state_dict(const attn_multi_head_attention* layer, attn_tensors** state, attn_error** error);
/** query (B,L,E) or (L,E); key and value both NULL: the query. -> as attn_scaled_dot_product_attention. */
ATTN_API attn_status attn_multi_head_attention_forward(const attn_multi_head_attention* layer, const attn_view* query, const attn_view* key,
                                                       const attn_view* value, const attn_attention_options* options, attn_tensors** results,
                                                       attn_error** error);

typedef struct attn_transformer_encoder attn_transformer_encoder;

/** As attn::TransformerEncoderOptions. */
typedef struct attn_transformer_encoder_options {
  int64_t d_model, nhead, dim_feedforward, num_layers;
  const char* activation; /**< "relu", "gelu", ... */
  float layer_norm_eps;
  bool norm_first, bias, gated, final_norm;
  int64_t num_key_value_heads; /**< 0: nhead */
} attn_transformer_encoder_options;

/** Of one forward: as attn::EncoderForwardOptions. */
typedef struct attn_encoder_forward_options {
  const attn_mask* mask;
  const attn_mask* key_padding_mask;
  bool is_causal;
  bool output_attentions;
  bool output_hidden_states;
  const char* const* trace; /**< names of intermediate results, of every layer */
  size_t trace_count;
} attn_encoder_forward_options;

ATTN_API void attn_transformer_encoder_options_init(attn_transformer_encoder_options* options);
ATTN_API void attn_encoder_forward_options_init(attn_encoder_forward_options* options);
ATTN_API attn_status attn_transformer_encoder_new(const attn_transformer_encoder_options* options, attn_transformer_encoder** encoder,
                                                  attn_error** error);
ATTN_API void attn_transformer_encoder_free(attn_transformer_encoder* encoder);
ATTN_API attn_status attn_transformer_encoder_load_state_dict(attn_transformer_encoder* encoder, const attn_tensors* state, bool strict,
                                                              attn_error** error);
ATTN_API attn_status attn_transformer_encoder_state_dict(const attn_transformer_encoder* encoder, attn_tensors** state, attn_error** error);
/** x (B,L,E) or (L,E) -> "output", where asked for "attentions.LAYER", "hidden_states.LAYER" and "trace.LAYER.NAME". */
ATTN_API attn_status attn_transformer_encoder_forward(const attn_transformer_encoder* encoder, const attn_view* x,
                                                      const attn_encoder_forward_options* options, attn_tensors** results, attn_error** error);

/* ---- text models ---- */

typedef struct attn_text_model attn_text_model;

typedef enum attn_weights ATTN_INT { ATTN_WEIGHTS_AS_STORED = 0, ATTN_WEIGHTS_FLOAT32 = 1, ATTN_WEIGHTS_INT8 = 2 } attn_weights;

/** A folder as transformers or sentence-transformers write it. */
ATTN_API attn_status attn_text_model_load(const char* folder, attn_weights weights, attn_text_model** model, attn_error** error);
ATTN_API void attn_text_model_free(attn_text_model* model);
/** Ids that a text is cut to unless the call says otherwise. */
ATTN_API int64_t attn_text_model_max_length(const attn_text_model* model);
/** What its head is for, as Hugging Face calls it: "text-classification", "token-classification", "fill-mask", "question-answering",
 * "multiple-choice"; "embedding" without one. */
ATTN_API const char* attn_text_model_task(const attn_text_model* model);
/** Of its head, in its order; NULL past the last. */
ATTN_API const char* attn_text_model_label(const attn_text_model* model, size_t index);

typedef struct attn_embed_options {
  int64_t max_length;      /**< 0: the model's */
  bool truncation;         /**< false: a longer text is OUT_OF_RANGE */
  const char* pooling;     /**< "mean", "cls", ...; NULL: the model's */
  int normalize;           /**< 1, 0, or -1: the model's */
  int64_t batch_size;      /**< any gives the same bits */
  const char* prompt;      /**< put before each text; NULL: the model's */
  const char* prompt_name; /**< one of config_sentence_transformers.json; NULL: the model's */
} attn_embed_options;

ATTN_API void attn_embed_options_init(attn_embed_options* options);
/** -> "embeddings" (N,E). */
ATTN_API attn_status attn_text_model_embed(const attn_text_model* model, const attn_text* texts, size_t count, const attn_embed_options* options,
                                           attn_tensors** results, attn_error** error);

typedef struct attn_classify_options {
  int64_t max_length;
  bool truncation;
  int64_t batch_size;
} attn_classify_options;

ATTN_API void attn_classify_options_init(attn_classify_options* options);
/** `pairs`: the second text of each pair, or NULL. -> "scores" (N,C), each row in falling order, and "labels" (N,C) int32: which. */
ATTN_API attn_status attn_text_model_classify(const attn_text_model* model, const attn_text* texts, const attn_text* pairs, size_t count,
                                              const attn_classify_options* options, attn_tensors** results, attn_error** error);

/** As attn::ClassifyTokensOptions. */
typedef struct attn_classify_tokens_options {
  int64_t max_length;
  bool truncation;
  const char* aggregation; /**< "none", "simple", "first", "average" or "max" */
  int64_t stride;          /**< of the windows of a long text; below 0: it is cut */
  const char* const* ignore_labels;
  size_t ignore_label_count;
  int64_t batch_size;
} attn_classify_tokens_options;

ATTN_API void attn_classify_tokens_options_init(attn_classify_tokens_options* options);
/** What texts name: M entities, text by text. -> "rows" (M) int64: whose, "scores" (M), "offsets" (M,2) int64: bytes of the text; texts "labels". */
ATTN_API attn_status attn_text_model_classify_tokens(const attn_text_model* model, const attn_text* texts, size_t count,
                                                     const attn_classify_tokens_options* options, attn_tensors** results, attn_error** error);

/** As attn::FillMaskOptions. */
typedef struct attn_fill_mask_options {
  int64_t top_k;
  const attn_text* targets;
  size_t target_count;
} attn_fill_mask_options;

ATTN_API void attn_fill_mask_options_init(attn_fill_mask_options* options);
/** The K most likely tokens for each of M masks. -> "ids" (M,K) int64, "scores" (M,K); texts, in the same order, "tokens" and "texts", the text with
 * the token in the place of the mask. */
ATTN_API attn_status attn_text_model_fill_mask(const attn_text_model* model, const attn_text* text, const attn_fill_mask_options* options,
                                               attn_tensors** results, attn_error** error);

/** As attn::AnswerOptions. */
typedef struct attn_answer_options {
  int64_t top_k;
  int64_t max_answer_length; /**< in tokens */
  int64_t stride;            /**< of the windows of a long context; below 0: the default */
  bool allow_empty;
} attn_answer_options;

ATTN_API void attn_answer_options_init(attn_answer_options* options);
/** The K most likely answers, at most top_k. -> "scores" (K), "offsets" (K,2) int64: bytes of the context; texts "texts". */
ATTN_API attn_status attn_text_model_answer(const attn_text_model* model, const attn_text* question, const attn_text* context,
                                            const attn_answer_options* options, attn_tensors** results, attn_error** error);

/** As attn::RankOptions. */
typedef struct attn_rank_options {
  int64_t max_length;
  bool truncation;
  int64_t top_k; /**< 0: all */
  int64_t batch_size;
} attn_rank_options;

ATTN_API void attn_rank_options_init(attn_rank_options* options);
/** Documents by falling relevance. -> "indices" (K) int64: which, "scores" (K). */
ATTN_API attn_status attn_text_model_rank(const attn_text_model* model, const attn_text* query, const attn_text* documents, size_t count,
                                          const attn_rank_options* options, attn_tensors** results, attn_error** error);

/** `pairs` as in classify; max_length 0: the model's. -> "input_ids", "token_type_ids" (B,L) int32, "attention_mask" (B,L) uint8,
 * "offsets" (B,L,2) int64: bytes of the text, -1 for padding and special tokens. */
ATTN_API attn_status attn_text_model_tokenize(const attn_text_model* model, const attn_text* texts, const attn_text* pairs, size_t count,
                                              int64_t max_length, bool truncation, attn_tensors** results, attn_error** error);
/** OUT_OF_RANGE for an id that is not there. The token is the caller's, freed by attn_string_free. */
ATTN_API attn_status attn_text_model_id_to_token(const attn_text_model* model, int64_t id, char** token, attn_error** error);
/** The text of tokens, the caller's, freed by attn_string_free. Ids that no token has are left out. */
ATTN_API attn_status attn_text_model_decode(const attn_text_model* model, const int32_t* ids, size_t count, bool skip_special_tokens, char** text,
                                            attn_error** error);
ATTN_API void attn_string_free(char* string);

/** As attn::TextForwardOptions. */
typedef struct attn_text_forward_options {
  bool output_attentions;
  bool output_hidden_states;
  bool is_causal;
  const attn_mask* mask;
  const attn_view* head_mask; /**< (layers,H); 0 switches a head off */
  const char* const* trace;   /**< names of intermediate results, of every layer */
  size_t trace_count;
} attn_text_forward_options;

ATTN_API void attn_text_forward_options_init(attn_text_forward_options* options);
/** input_ids, and where they are not NULL token_type_ids and attention_mask, (B,L). -> "last_hidden_state", with a head "logits", where asked
 * for "attentions.LAYER", "hidden_states.LAYER" and "trace.LAYER.NAME". */
ATTN_API attn_status attn_text_model_forward(const attn_text_model* model, const int32_t* input_ids, const int32_t* token_type_ids,
                                             const uint8_t* attention_mask, int64_t batch, int64_t length, const attn_text_forward_options* options,
                                             attn_tensors** results, attn_error** error);

/** What each token has to do with an answer. method: "integrated_gradients", "leave_one_out", ...; target: a label, NULL: the answer.
 * -> "scores" (L), "offsets" (L,2) int64, of integrated_gradients "delta" (1). */
ATTN_API attn_status attn_text_model_attribute(const attn_text_model* model, const attn_text* text, const char* method, const char* target,
                                               attn_tensors** results, attn_error** error);

ATTN_API attn_status attn_text_model_state_dict(const attn_text_model* model, attn_tensors** state, attn_error** error);
ATTN_API attn_status attn_text_model_load_state_dict(attn_text_model* model, const attn_tensors* state, bool strict, attn_error** error);
typedef enum attn_file_weights ATTN_INT { ATTN_FILE_AS_IS = 0, ATTN_FILE_FLOAT32 = 1, ATTN_FILE_FLOAT16 = 2, ATTN_FILE_INT8 = 3 } attn_file_weights;
ATTN_API attn_status attn_text_model_save_pretrained(const attn_text_model* model, const char* folder, attn_file_weights weights, attn_error** error);

#ifdef __cplusplus
}
#endif

#endif
